"""The actor that owns all engines and makes the rollouts."""

from __future__ import annotations

import argparse
from typing import Any, cast

import ray
from ray.exceptions import RayError

from miles.backends.sglang_utils import sglang_engine
from miles.launchers import RunFailedError
from miles.ray.failures import own_words
from miles.ray.placement_group import Placement
from miles.ray.rollout.remote_engine import RemoteEngine
from miles.ray.rollout.sglang_engine import SGLangEngine
from miles.rollout import rollout_manager

_ANSWER_S = 5.0
_SHUTDOWN_S = 10.0


class RolloutManager(rollout_manager.RolloutManager):
    """A manager that starts the engines it speaks to; they end with it.

    Args:
        args: The run's flags.
        placement: Where the engines go.

    Raises:
        RunFailedError: A control process could not start.
    """

    def __init__(self, args: argparse.Namespace, placement: Placement) -> None:
        self._actors: list[Any] = []
        external = args.rollout_external_engine_addrs or []
        engines = [sglang_engine.SGLangEngine(address, i) for i, address in enumerate(external)]
        super().__init__(args, engines or self._start(args, placement))

    def get_updatable_engines(self) -> list[sglang_engine.SGLangEngine]:
        """The engines that weights are sent to, by index; empty without engines."""
        return self.engines

    def generate(self, rollout_id: int) -> rollout_manager.Rollout:
        """Sample one global batch from the engines, or draw one where there are none."""
        if not self.engines:
            return rollout_manager.random_rollout(self._args, rollout_id)
        return super().generate(rollout_id)

    def ended_engines(self) -> list[str]:
        """A sentence for every engine whose server or control process is gone."""
        found = []
        for index, actor in enumerate(self._actors):
            try:
                status = ray.get(actor.exit_status.remote(), timeout=_ANSWER_S)
            except ray.exceptions.GetTimeoutError:
                continue  # it waits for its server: that is no end
            except RayError as error:
                found.append(f"the control process of engine {index} is gone: {own_words(error)}")
                continue
            if status is not None:
                found.append(f"engine {index} ended with status {status}")
        return found

    def dispose(self) -> None:
        """End all engines, those that do not answer as well."""
        ends = [actor.shutdown.remote() for actor in self._actors]
        if ends:
            ray.wait(ends, num_returns=len(ends), timeout=_SHUTDOWN_S)
        for actor in self._actors:
            ray.kill(actor)

    def _start(
        self, args: argparse.Namespace, placement: Placement
    ) -> list[sglang_engine.SGLangEngine]:
        actor_class = ray.remote(SGLangEngine)
        for index in range(len(placement.engine_bundles)):
            options = placement.options_of_engine(index)
            host = placement.address_of_engine(index)
            self._actors.append(actor_class.options(**options).remote(args, index, host))
        engines = []
        for index, actor in enumerate(self._actors):
            try:
                address = ray.get(actor.get_address.remote())
            except RayError as error:
                raise RunFailedError(f"engine {index} did not start: {own_words(error)}") from error
            engines.append(RemoteEngine(actor, index, address))
        return cast("list[sglang_engine.SGLangEngine]", engines)
