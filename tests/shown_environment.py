"""The environment of a process that was forked, shown in `/proc` as of one that was executed.

The kernel shows the memory that the environment lay in when the program was executed. A program
that was started with room in there can write its variables into it.
"""

import ctypes
import os

ROOM = "SHOWN_ENVIRONMENT"
_NUM_BYTES = 1000
_libc = ctypes.CDLL(None)
_libc.getenv.restype = ctypes.c_void_p


def room() -> dict[str, str]:
    """What the environment of the program has to hold when it is started."""
    return {ROOM: "-" * _NUM_BYTES}


class ShownEnvironment:
    """The variables that this process sets for all to see; its forks go on from there."""

    def __init__(self) -> None:
        # At once: whoever sets the variable anew moves it. Its name and `=` are room as well.
        value_at = _libc.getenv(ROOM.encode())
        self._at = value_at - len(ROOM) - 1 if value_at else 0
        self._shown: dict[str, str] = {}

    def set(self, **variables: str) -> None:
        """Set variables, here and where they show."""
        assert self._at, "this program was started without room in its environment"
        os.environ.update(variables)
        self._shown |= variables
        data = b"\0".join(f"{name}={text}".encode() for name, text in self._shown.items())
        size = len(ROOM) + 1 + _NUM_BYTES
        assert len(data) <= size, self._shown
        ctypes.memmove(self._at, data.ljust(size, b"\0"), size)
