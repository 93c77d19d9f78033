"""Which torch, NCCL and engines a process has loaded, by what it maps. A source of `capture`."""

from __future__ import annotations

import functools
import re

from watchdog.capture import proc, versions
from watchdog.capture.target import Part, Target

NAME = "libraries"

_SITE = re.compile(r"(/\S*?/(?:site|dist)-packages)/torch/lib/")
_NCCL = re.compile(r"/\S*libnccl\.so[\w.]*")


def collect(target: Target) -> Part:
    """Versions of the packages beside the torch that it mapped, and the path of its libnccl.

    Raises:
        OSError: Its memory map may not be read.
    """
    if proc.state(target.pid) in ("", "Z", "X"):
        return Part()
    text = proc.read_text(f"/proc/{target.pid}/maps")
    site, nccl = _SITE.search(text), _NCCL.search(text)
    found = dict(_beside(site[1])) if site else {}
    if nccl:
        found["libnccl.so"] = nccl[0]
    return Part(versions=found)


@functools.lru_cache(maxsize=16)
def _beside(site: str) -> tuple[tuple[str, str], ...]:
    return tuple(versions.installed_in(site).items())
