"""All trainer ranks of a run, as the driver speaks to them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from miles.backends.megatron_utils.actor import MegatronTrainRayActor
from miles.backends.sglang_utils.sglang_engine import SGLangEngine
from miles.launchers import RunFailedError
from miles.ray.failures import FailedCall, most_telling
from miles.ray.placement_group import Placement

# Once a rank failed because its connection broke, the news of who died may still be on its way.
_LATE_NEWS_S = 10.0
_EXIT_S = 10.0


class RayTrainGroup:
    """One actor a rank; each method is called on all of them at once.

    A method raises `RunFailedError` as soon as one rank failed, and leaves the others where
    they are, usually in a collective that the failed one will never join: stop them.

    Args:
        args: The run's flags.
        placement: Where the ranks go.
    """

    def __init__(self, args: argparse.Namespace, placement: Placement) -> None:
        self._args = args
        self._actors: list[Any] = []
        num_ranks = args.actor_num_nodes * args.actor_num_gpus_per_node
        # Decorated here and not in its module: what was hooked into the plain class in the
        # worker's process is what runs there.
        actor_class: Any = ray.remote(MegatronTrainRayActor)
        master: tuple[str | None, int | None] = (None, None)
        for rank in range(num_ranks):
            local_rank = rank % placement.ranks_per_node
            actor = actor_class.options(**placement.options_of_rank(rank)).remote(
                num_ranks, rank, *master, local_rank
            )
            self._actors.append(actor)
            if rank == 0:
                master = ray.get(actor.get_master_addr_and_port.remote())

    async def init(self) -> None:
        """Build model, optimizer and backup on every rank."""
        await self._broadcast("init", self._args)

    async def train(self, rollout_id: int, rollout_data_ref: Any) -> dict[str, float]:
        """Take one optimizer step.

        Args:
            rollout_id: Number of the rollout, from 0.
            rollout_data_ref: Ray's reference of a `Rollout`; each rank fetches it.

        Returns:
            The metrics of the step, the same on all ranks.
        """
        metrics: list[dict[str, float]] = await self._broadcast(
            "train", rollout_id, rollout_data_ref
        )
        return metrics[0]

    async def sleep(self) -> None:
        """Release the memory of every rank."""
        await self._broadcast("sleep")

    async def update_weights(self, engines: list[SGLangEngine]) -> None:
        """Bring the engines up to date."""
        await self._broadcast("update_weights", engines)

    async def check_engine_weights(self, engines: list[SGLangEngine]) -> int:
        """Compare what the engines hold with the live weights; returns tensors an engine."""
        counts: list[int] = await self._broadcast("check_engine_weights", engines)
        return counts[0]

    async def finish(self) -> None:
        """End all ranks as a process ends that has nothing left to do; `stop` does the rest."""
        await self._broadcast("leave")
        # Not killed: what they registered for their exit is to run.
        ends = [asyncio.wrap_future(a.__ray_terminate__.remote().future()) for a in self._actors]
        await asyncio.wait(ends, timeout=_EXIT_S)
        for end in ends:
            if end.done():
                end.exception()  # that the actor is gone

    def stop(self) -> None:
        """End all ranks, wherever they are."""
        for actor in self._actors:
            ray.kill(actor)

    async def _broadcast(self, method: str, *args: Any) -> list[Any]:
        failures: list[FailedCall] = []

        async def call(rank: int) -> Any:
            try:
                return await getattr(self._actors[rank], method).remote(*args)
            except RayError as error:
                failures.append(FailedCall(f"rank {rank}", error))
                raise

        calls = [asyncio.ensure_future(call(rank)) for rank in range(len(self._actors))]
        _, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
        if failures and failures[0].is_from_a_broken_connection and waiting:
            await asyncio.wait(waiting, timeout=_LATE_NEWS_S)
        if failures:
            await _abandon(calls)
            raise RunFailedError(str(most_telling(failures)))
        return [each.result() for each in calls]


async def _abandon(calls: Sequence[asyncio.Future[Any]]) -> None:
    for each in calls:
        each.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
