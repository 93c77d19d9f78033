"""The reinforcement-learning loop, as every rank runs it."""

from __future__ import annotations

import argparse
import logging
import os
import time
from typing import Any

import torch.distributed as dist

from miles.backends.megatron_utils.actor import MegatronTrainRayActor
from miles.backends.sglang_utils.sglang_engine import SGLangEngine
from miles.rollout.rollout_manager import Rollout, RolloutManager, random_rollout
from miles.utils.distributed_utils import get_gloo_group
from miles.utils.step_report import begin_report, report_step

logger = logging.getLogger(__name__)


def run(args: argparse.Namespace, engine_addresses: list[str]) -> None:
    """Train for `--num-rollout` rollouts.

    Args:
        args: The run's flags.
        engine_addresses: `http://host:port` of every engine, by index; empty with
            `--debug-train-only`.

    Raises:
        EngineError: An engine failed or is gone.
        WeightsUnavailableError: The residency audit found weights that cannot be read.
    """
    engines = [SGLangEngine(address, i) for i, address in enumerate(engine_addresses)]
    loop = _Loop(args, RolloutManager(args, engines))
    loop.start()
    for rollout_id in range(args.num_rollout):
        loop.step(rollout_id)
    loop.finish()


class _Loop:
    """The actor of this rank, and rank 0's dealings with the engines around it."""

    def __init__(self, args: argparse.Namespace, manager: RolloutManager) -> None:
        self._args = args
        self._manager = manager
        self._actor = MegatronTrainRayActor(
            int(os.environ["WORLD_SIZE"]),
            int(os.environ["RANK"]),
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
        )
        self._is_first = self._actor.rank == 0

    def start(self) -> None:
        """Build the model and give the engines their first weights."""
        self._actor.init(self._args)
        dist.barrier(group=get_gloo_group())
        if self._is_first:
            logger.info("all ranks are up")
        if self._is_first:
            begin_report(self._args)
        self._sync()

    def step(self, rollout_id: int) -> None:
        """One rollout: generate, train, offload, sync."""
        rollout = self._rollout(rollout_id)
        metrics: dict[str, Any] = {"rollout": rollout_id, "reward": float(rollout.rewards.mean())}
        metrics["weight_version"] = rollout.weight_version
        if not self._args.debug_rollout_only:
            started_s = time.perf_counter()
            metrics |= self._actor.train(rollout_id, rollout)
            if self._args.offload_train:
                self._actor.sleep()
            metrics["train_s"] = time.perf_counter() - started_s
        if self._is_first and self._args.offload_rollout:
            self._manager.onload()
        is_due = (rollout_id + 1) % self._args.update_weights_interval == 0
        if is_due and not self._args.debug_rollout_only:
            metrics["sync_s"] = self._sync()
        if self._is_first:
            report_step(self._args, metrics)

    def finish(self) -> None:
        """Prove that the engines hold exactly the weights that were trained."""
        if self._manager.engines and not self._args.debug_rollout_only:
            num_tensors = self._actor.check_engine_weights(self._manager.engines)
            if self._is_first:
                logger.info(
                    "done: %d engine(s) hold the trained weights, %d tensors each",
                    len(self._manager.engines),
                    num_tensors,
                )
        self._actor.leave()

    def _rollout(self, rollout_id: int) -> Rollout:
        made: list[Rollout | None] = [None]
        if self._is_first:
            made[0] = (
                self._manager.generate(rollout_id)
                if self._manager.engines
                else random_rollout(self._args, rollout_id)
            )
            if self._args.offload_rollout:
                self._manager.offload()
        dist.broadcast_object_list(made, src=0, group=get_gloo_group())
        if made[0] is None:
            raise RuntimeError("rank 0 broadcast no rollout")
        return made[0]

    def _sync(self) -> float:
        """Sync the weights; return how long it took in seconds."""
        started_s = time.perf_counter()
        if self._manager.engines:
            self._actor.update_weights(self._manager.engines)
        return time.perf_counter() - started_s
