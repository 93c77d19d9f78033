"""The run as its driver sees it: reserve, start, loop over all ranks, stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

import ray
from ray.exceptions import RayError

from miles.launchers import RunFailedError
from miles.ray.actor_group import RayTrainGroup
from miles.ray.environment import runtime_env
from miles.ray.failures import FailedCall, own_words
from miles.ray.placement_group import Placement, create_placement_groups
from miles.ray.rollout.rollout_manager import RolloutManager
from miles.utils.step_report import begin_report, report_step

logger = logging.getLogger(__name__)

_ANSWER_S = 15.0


def run(args: argparse.Namespace) -> None:
    """Train for `--num-rollout` rollouts on the cluster that this process is connected to.

    Raises:
        RunFailedError: A rank or an engine failed, or there is no room.
    """
    try:
        with _placement(args) as placement, _rollout_manager(args, placement) as manager:
            try:
                with _train_group(args, placement) as group:
                    asyncio.run(_Loop(args, group, manager).run())
            except RunFailedError as error:
                ended = _ended_engines(manager)
                raise RunFailedError("\n".join([str(error), *ended])) from error
    except RayError as error:
        raise RunFailedError(own_words(error)) from error


@contextlib.contextmanager
def _placement(args: argparse.Namespace) -> Iterator[Placement]:
    placement = create_placement_groups(args)
    try:
        yield placement
    finally:
        ray.util.remove_placement_group(placement.group)


@contextlib.contextmanager
def _rollout_manager(args: argparse.Namespace, placement: Placement) -> Iterator[Any]:
    # Waits for others more than it computes, so it counts for no CPU.
    actor_class: Any = ray.remote(RolloutManager)
    manager = actor_class.options(num_cpus=0, runtime_env=runtime_env()).remote(args, placement)
    try:
        yield manager
    finally:
        # Its engines end in order; if it cannot see to that, they end because it does.
        ray.wait([manager.dispose.remote()], timeout=_ANSWER_S)
        ray.kill(manager)


@contextlib.contextmanager
def _train_group(args: argparse.Namespace, placement: Placement) -> Iterator[RayTrainGroup]:
    group = RayTrainGroup(args, placement)
    try:
        yield group
    finally:
        group.stop()


def _ended_engines(manager: Any) -> list[str]:
    try:
        ended: list[str] = ray.get(manager.ended_engines.remote(), timeout=_ANSWER_S)
    except RayError:  # the manager waits for an engine itself, or is gone
        return []
    return ended


class _Loop:
    """The order of a step, as `miles.training_loop` has it, called from outside the ranks."""

    def __init__(self, args: argparse.Namespace, group: RayTrainGroup, manager: Any) -> None:
        self._args = args
        self._group = group
        self._manager = manager
        self._engines: list[Any] = []

    async def run(self) -> None:
        self._engines = await self._ask("get_updatable_engines")
        await self._group.init()
        logger.info("all ranks are up")
        begin_report(self._args)
        await self._sync()
        for rollout_id in range(self._args.num_rollout):
            await self._step(rollout_id)
        if self._engines and not self._args.debug_rollout_only:
            num_tensors = await self._group.check_engine_weights(self._engines)
            logger.info(
                "done: %d engine(s) hold the trained weights, %d tensors each",
                len(self._engines),
                num_tensors,
            )
        await self._group.finish()

    async def _step(self, rollout_id: int) -> None:
        args = self._args
        rollout = await self._ask("generate", rollout_id)
        if args.offload_rollout:
            await self._ask("offload")
        metrics: dict[str, Any] = {"rollout": rollout_id, "reward": float(rollout.rewards.mean())}
        metrics["weight_version"] = rollout.weight_version
        if not args.debug_rollout_only:
            started_s = time.perf_counter()
            metrics |= await self._group.train(rollout_id, ray.put(rollout))
            if args.offload_train:
                await self._group.sleep()
            metrics["train_s"] = time.perf_counter() - started_s
        if args.offload_rollout:
            await self._ask("onload")
        is_due = (rollout_id + 1) % args.update_weights_interval == 0
        if is_due and not args.debug_rollout_only:
            metrics["sync_s"] = await self._sync()
        report_step(args, metrics)

    async def _sync(self) -> float:
        """Sync the weights; return how long it took in seconds."""
        started_s = time.perf_counter()
        if self._engines:
            await self._group.update_weights(self._engines)
        return time.perf_counter() - started_s

    async def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            return await getattr(self._manager, method).remote(*arguments)
        except RayError as error:
            raise RunFailedError(str(FailedCall("rollout manager", error))) from error
