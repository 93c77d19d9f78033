"""A process whose allocations are refused: `RLIMIT_AS` a little above what it has now."""

from __future__ import annotations

import resource
from pathlib import Path

ROOM_BYTES = 64 << 20


def limit_memory() -> None:
    """Let this process have `ROOM_BYTES` more than now; whatever is larger is refused at once."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # Who aborts for it leaves no core behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
