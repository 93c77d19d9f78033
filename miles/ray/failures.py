"""Ray's errors in the words of the run: who failed, where, and what it said itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ray.exceptions import ActorDiedError, RayError, RayTaskError

# What gloo and the store say on the ranks that had to do with one that is gone.
_BROKEN = ("Connection closed by peer", "Connection reset", "Broken pipe", "failed to recv")
# Pid and address as a failed task and a dead actor have them in their messages.
_PLACES = (r"\(pid=(\d+), ip=([^,)]+)", r"pid: (\d+)\s.*?\bip: (\S+)")
_GUESSES = "Some common causes include"


@dataclass(frozen=True)
class FailedCall:
    """A call of an actor that did not return.

    Attributes:
        who: `rank 1`, `rollout manager` …
        error: What Ray raised in its place.
    """

    who: str
    error: RayError

    @property
    def is_of_a_dead_process(self) -> bool:
        """Whether the actor's process ended without raising anything."""
        return isinstance(self.error, ActorDiedError)

    @property
    def is_from_a_broken_connection(self) -> bool:
        """Whether the actor only saw that somebody else is gone."""
        return any(words in str(self.error) for words in _BROKEN)

    def __str__(self) -> str:
        found = (re.search(pattern, str(self.error), re.DOTALL) for pattern in _PLACES)
        place = next((f" (pid {match[1]} on {match[2]})" for match in found if match), "")
        verb = "is gone" if self.is_of_a_dead_process else "failed"
        return f"{self.who}{place} {verb}: {own_words(self.error)}"


def own_words(error: RayError) -> str:
    """The type and message that the actor's code raised, else Ray's reason."""
    cause: BaseException = error
    while isinstance(cause, RayTaskError) and isinstance(cause.cause, BaseException):
        cause = cause.cause
    if not isinstance(cause, RayError):
        return f"{type(cause).__name__}: {cause}"
    # Ray's reason, or the end of the traceback of a constructor, comes last.
    reason = str(cause).strip().splitlines()[-1]
    return reason.partition(_GUESSES)[0].strip()


def most_telling(failures: Sequence[FailedCall]) -> FailedCall:
    """The one to blame: a process that is gone, else the first that broke no connection.

    Args:
        failures: In the order in which they came, at least one.
    """

    def telling(failure: FailedCall) -> tuple[bool, bool]:
        return not failure.is_of_a_dead_process, failure.is_from_a_broken_connection

    return min(failures, key=telling)
