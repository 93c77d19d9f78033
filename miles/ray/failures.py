"""Ray's errors in the words of the run: who failed, where, and what it said itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ray.exceptions import ActorDiedError, RayError, RayTaskError

# What gloo and the store say on the ranks that had to do with one that is gone.
_BROKEN = ("Connection closed by peer", "Connection reset", "Broken pipe", "failed to recv")


@dataclass(frozen=True)
class FailedCall:
    """A call of an actor that did not return.

    Attributes:
        who: `rank 1`, `engine 0` …
        error: What Ray raised in its place.
    """

    who: str
    error: RayError

    @property
    def is_of_a_dead_process(self) -> bool:
        """Whether the actor's process ended; it raised nothing itself."""
        return isinstance(self.error, ActorDiedError) and "__init__" not in str(self.error)

    @property
    def is_from_a_broken_connection(self) -> bool:
        """Whether the actor only saw that somebody else is gone."""
        return any(words in str(self.error) for words in _BROKEN)

    def __str__(self) -> str:
        if isinstance(self.error, RayTaskError):
            where = f" (pid {self.error.pid} on {self.error.ip})"
            return f"{self.who}{where} failed: {own_words(self.error)}"
        return f"{self.who} is gone: {own_words(self.error)}"


def own_words(error: RayError) -> str:
    """The type and message that the actor's code raised, or Ray's reason without the padding."""
    cause: BaseException = error
    while isinstance(cause, RayTaskError) and isinstance(cause.cause, BaseException):
        cause = cause.cause
    if not isinstance(cause, RayError):
        return f"{type(cause).__name__}: {cause}"
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {' '.join(lines)}"


def most_telling(failures: Sequence[FailedCall]) -> FailedCall:
    """The one to blame: a process that is gone, else the first that broke no connection.

    Args:
        failures: In the order in which they came, at least one.
    """

    def telling(failure: FailedCall) -> tuple[bool, bool]:
        return not failure.is_of_a_dead_process, failure.is_from_a_broken_connection

    return min(failures, key=telling)
