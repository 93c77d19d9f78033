"""Where the store of the job is, noted beside the black boxes of a node.

A rank that is stopped can no longer say it, and who speaks for it has no process group to ask.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = "store.json"


class StoreAddress(NamedTuple):
    """A `TCPStore`, and what the watchdog's keys in it begin with.

    Attributes:
        host: Its host, as the ranks of this node call it.
        port: Its port.
        prefix: Of all keys of this run.
    """

    host: str
    port: int
    prefix: str


def prefix_of(environ: Mapping[str, str]) -> str:
    """What the watchdog's keys of this run begin with.

    A launcher that starts ranks anew may keep the store, with what was asked and answered before.
    torch keeps its own keys apart by the same number.

    Args:
        environ: Environment of a rank.
    """
    return f"miles-watchdog/attempt_{environ.get('TORCHELASTIC_RESTART_COUNT') or 0}/"


def note(local: Path, address: StoreAddress) -> None:
    """Write it down, for whoever speaks for the ranks of this node. Never raises.

    Args:
        local: Folder of the node's black boxes.
        address: What to note.
    """
    unfinished = local / f".{FILE}.{os.getpid()}"
    try:
        unfinished.write_text(json.dumps(address._asdict()))
        os.replace(unfinished, local / FILE)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def noted(local: Path) -> StoreAddress | None:
    """What was noted last, `None` where nothing (readable) was."""
    try:
        said = json.loads((local / FILE).read_bytes())
        return StoreAddress(str(said["host"]), int(said["port"]), str(said["prefix"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
