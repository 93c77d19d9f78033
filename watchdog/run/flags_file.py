"""The arguments in a file, for ranks that never see them: `<dir>/<run>/flags.json`.

Written by the process that validated them and is no rank itself: the driver under Ray, or a
launcher. Read at a stall by a rank that has none of its own, or not the defaults. It is masked
before it is written, and gone when its writer ends. Where that folder refuses it, it lies in the
substitute, like a report.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from watchdog.evidence import Flag
from watchdog.guest.worker import run_guarded
from watchdog.masking import mask_value
from watchdog.process_identity import RUN_VARIABLE, process_identity, run_name
from watchdog.run import last_word
from watchdog.run.substitute import is_ours, substitute_of, substitute_root
from watchdog.settings import Settings

FILE_NAME = "flags.json"

_MAX_BYTES = 1_000_000
# The disk may hang, the program must not.
_PATIENCE_S = 1.0


def publish(snapshot: Callable[[], tuple[Flag, ...]]) -> None:
    """Write the arguments where the ranks of this run look, if this process is no rank.

    Its children get the name of the run, so that they look there. Waits at most a second.

    Args:
        snapshot: The arguments with their defaults; called on another thread.
    """
    settings = Settings.from_environ(os.environ)
    if not settings.enabled or process_identity(os.environ).role != "other":
        return
    if "RANK" in os.environ or not _knows_run():
        return
    run = os.environ[RUN_VARIABLE] = run_name(os.environ)
    folder = Path(os.path.abspath(os.path.expanduser(settings.dir)))
    os.environ["MILES_WATCHDOG_DIR"] = str(folder)
    last_word.promise(folder / run)
    writer = threading.Thread(
        target=lambda: run_guarded(lambda: _write(folder / run, snapshot())),
        name="weight-sync-watchdog-flags",
        daemon=True,
    )
    writer.start()
    writer.join(_PATIENCE_S)


def completed(own: tuple[Flag, ...], environ: Mapping[str, str]) -> tuple[Flag, ...]:
    """The arguments of a rank, with those and the defaults that only the file knows.

    Args:
        own: What this process itself recorded, possibly nothing.
        environ: Usually `os.environ`; the watch has written the run's place into it.
    """
    known = {flag.name: flag for flag in read(environ)}
    if not own:
        return tuple(known.values())
    return tuple(
        replace(flag, default=known[flag.name].default)
        if flag.default is None and flag.name in known
        else flag
        for flag in own
    )


def read(environ: Mapping[str, str]) -> tuple[Flag, ...]:
    """The arguments that the driver or launcher of this run wrote, () where there are none."""
    folder, run = environ.get("MILES_WATCHDOG_DIR", ""), environ.get(RUN_VARIABLE, "")
    if not folder or not run:
        return ()
    run_folder = Path(folder) / run
    return _flags_in(run_folder) or _flags_in(substitute_of(run_folder), of_this_user=True)


def _flags_in(folder: Path, *, of_this_user: bool = False) -> tuple[Flag, ...]:
    try:
        with (folder / FILE_NAME).open("rb") as file:
            # Where all may write, the place may be taken by somebody else.
            if of_this_user and os.fstat(file.fileno()).st_uid != os.getuid():
                return ()
            written = json.loads(file.read(_MAX_BYTES))
        return tuple(Flag(**entry) for entry in written)
    except (OSError, ValueError, TypeError):
        return ()


def _knows_run() -> bool:
    """Whether ranks will call the run as this process does.

    A driver gets its job's name from Ray once it is connected: the adapter asks again then.
    """
    if os.environ.get(RUN_VARIABLE) or "ray" not in sys.modules:
        return True
    return run_name(os.environ).startswith("ray-")


def _write(run_folder: Path, flags: tuple[Flag, ...]) -> None:
    text = json.dumps([asdict(_masked(flag)) for flag in flags])
    if not flags or len(text) > _MAX_BYTES:
        return
    # Who cannot write here is told so by the ranks, which write to the same folder.
    with contextlib.suppress(OSError):
        _write_into(run_folder, text)
        return
    if is_ours(substitute_root()):
        with contextlib.suppress(OSError):
            _write_into(substitute_of(run_folder), text)


def _write_into(folder: Path, text: str) -> None:
    path = folder / FILE_NAME
    unfinished = path.with_name(f".{FILE_NAME}.{os.getpid()}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w") as file:
            file.write(text)
        os.replace(unfinished, path)
    except OSError:
        # On a full disk it may be there, and empty.
        unfinished.unlink(missing_ok=True)
        raise
    atexit.register(_remove, path, os.getpid())


def _remove(path: Path, writer_pid: int) -> None:
    if os.getpid() != writer_pid:
        return
    with contextlib.suppress(OSError):
        path.unlink()
        path.parent.rmdir()
        path.parent.parent.rmdir()


def _masked(flag: Flag) -> Flag:
    def kept(value: Any) -> Any:
        return mask_value(flag.name, value) if isinstance(value, str) else value

    return replace(
        flag,
        value=kept(flag.value),
        default=kept(flag.default),
        origin=f"{flag.origin} in process {os.getpid()}",
    )
