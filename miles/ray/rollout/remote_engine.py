"""A rollout engine behind its control process, as a trainer rank sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from miles.backends.sglang_utils.sglang_engine import EngineError


@dataclass(frozen=True)
class RemoteEngine:
    """Has the methods of `SGLangEngine`; each waits for the control process to do it.

    So a rank's code is the same as with engines that it speaks to itself, errors included.

    Attributes:
        actor: Handle of the control process.
        index: The engine's number, from 0.
        address: `http://host:port` of the server that the control process started.
    """

    actor: Any
    index: int
    address: str

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self.actor, name)

        def call(*args: Any, **keywords: Any) -> Any:
            try:
                return ray.get(method.remote(*args, **keywords))
            except RayTaskError as error:
                raise error.cause from None
            except RayActorError as error:
                raise EngineError(
                    f"control process of engine {self.index} at {self.address} is gone: {error}"
                ) from error

        return call
