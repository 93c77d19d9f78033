"""torch_memory_saver: which regions exist, and which are paused.

Source:
    fzyzcjy/torch_memory_saver at 4a43c9777, `torch_memory_saver/entrypoint.py`.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed

FRAMEWORK = ""
_MODULE = "torch_memory_saver.entrypoint"


def _tag(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    tag = args[1] if len(args) > 1 else kwargs.get("tag")
    return None if tag is None else str(tag)


def _region(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import memory_ledger

    backup = args[2] if len(args) > 2 else kwargs.get("enable_cpu_backup", False)
    memory_ledger.region_used(_tag(args, kwargs) or memory_ledger.DEFAULT_TAG, bool(backup))


def _paused(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import memory_ledger

    memory_ledger.paused(_tag(args, kwargs))


def _resumed(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import memory_ledger

    memory_ledger.resumed(_tag(args, kwargs))


HOOKS = (
    observed(_MODULE, "TorchMemorySaver.region", _region),
    observed(_MODULE, "TorchMemorySaver.pause", _paused),
    observed(_MODULE, "TorchMemorySaver.resume", _resumed),
)
