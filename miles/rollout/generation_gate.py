"""Where running requests pass before every token, and are held while the engine is paused."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

PAUSE_MODES = ("abort", "retract", "in_place")


class NotServingError(RuntimeError):
    """The engine cannot generate now; the message says why."""


class GenerationGate:
    """Counts running requests, and stops them in one of three ways.

    `abort` ends them with an error. `retract` holds them and counts them out, as if they
    were back in the queue. `in_place` holds them where they are: they still count, so a
    cache flush is refused until they go on.

    Every method may be called from any thread; state changes under one condition, and a
    held request waits on it without holding any other lock.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._mode: str | None = None
        self._num_running = 0

    @property
    def is_paused(self) -> bool:
        """Whether `pause` was called since the last `open`."""
        return self._mode is not None

    @property
    def num_running(self) -> int:
        """Requests that a cache flush would disturb."""
        return self._num_running

    def pause(self, mode: str) -> None:
        """Hold or abort what runs, and refuse what comes.

        Raises:
            ValueError: There is no such mode.
        """
        if mode not in PAUSE_MODES:
            raise ValueError(f"mode must be one of {', '.join(PAUSE_MODES)}, not {mode}")
        with self._changed:
            self._mode = mode
            self._changed.notify_all()

    def open(self) -> None:
        """Let held requests go on, and new ones in."""
        with self._changed:
            self._mode = None
            self._changed.notify_all()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Around one request.

        Raises:
            NotServingError: The engine is paused.
        """
        with self._changed:
            if self._mode is not None:
                raise NotServingError("the engine is paused")
            self._num_running += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_running -= 1

    def before_token(self) -> None:
        """Return when the next token may be made.

        Raises:
            NotServingError: The request is aborted.
        """
        with self._changed:
            while self._mode is not None:
                if self._mode == "abort":
                    raise NotServingError("generation was aborted: the engine is paused")
                self._hold(self._mode)

    def _hold(self, mode: str) -> None:
        counted_out = mode == "retract"
        self._num_running -= counted_out
        self._changed.wait_for(lambda: self._mode != mode)
        self._num_running += counted_out
