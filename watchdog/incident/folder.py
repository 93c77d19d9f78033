"""Where an incident is written: its own folder, or a substitute when that cannot be had."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from watchdog.capture import bounded
from watchdog.run.incident_ids import slug
from watchdog.run.substitute import is_too_long, substitute_root

_TIMEOUT_S = 5.0
RAW = "raw"
EVIDENCE = "evidence.json"
REPORT = "report.json"


class NothingWrittenError(OSError):
    """No folder took the file. The message says of each why not."""


class IncidentFolder:
    """One incident on disk.

    Files appear whole or not at all, and belong to the user alone. A folder that refuses is no
    end: the next one is tried, so that a full disk costs the place, not the report.

    Attributes:
        folders: Where files may lie, the wanted place first. They need not exist.
    """

    def __init__(self, run_folder: Path, incident_id: str, substitute: Path | None = None) -> None:
        substitute = substitute or substitute_root()
        self.incidents = run_folder / "incidents"
        self.incident_id = incident_id
        wanted = (self.incidents / incident_id).absolute()
        instead = substitute / slug(run_folder.name) / "incidents" / incident_id
        usable = dict.fromkeys(each for each in (wanted, instead) if not is_too_long(each))
        self.folders = tuple(usable) or (instead,)
        self.refusals: dict[Path, str] = {}

    @property
    def place(self) -> Path:
        """The folder in which the next file is tried first."""
        return next((each for each in self.folders if each not in self.refusals), self.folders[0])

    def is_one_too_many(self, max_incidents: int) -> bool:
        """Whether the run has as many incidents as it may have, and this is a further one."""
        try:
            others = {name for name in os.listdir(self.incidents) if name != self.incident_id}
        except OSError:
            return False
        return len(others) >= max_incidents

    def write(self, name: str, text: str) -> Path:
        """Write a file, or replace it, in one step.

        Args:
            name: Path below the incident's folder: `raw/rank-3.json`.
            text: All of it.

        Raises:
            NothingWrittenError: No folder took it.
        """
        data = text.encode(errors="replace")
        for folder in self.folders:
            if folder in self.refusals:
                continue
            try:
                bounded.result(lambda to=folder: _write(to / name, data), timeout_s=_TIMEOUT_S)  # type: ignore[misc]
            except OSError as error:  # TimeoutError is one
                self.refusals[folder] = error.strerror or str(error)
            else:
                return folder / name
        said = "; ".join(f"{folder}: {why}" for folder, why in self.refusals.items())
        raise NothingWrittenError(said)

    def files(self, pattern: str) -> list[Path]:
        """Files of this incident by a glob pattern, in whichever folder they lie."""
        return [path for folder in self.folders for path in sorted(folder.glob(pattern))]

    def find(self, name: str) -> Path | None:
        """A file of this incident, wherever it lies."""
        return next((each / name for each in self.folders if (each / name).is_file()), None)

    def remove(self) -> None:
        """Leave nothing of an incident that is not reported. Never raises."""
        if self.find(REPORT) is None:
            for folder in self.folders:
                shutil.rmtree(folder, ignore_errors=True)

    def make(self) -> Path:
        """Create the folder itself, for a lock or another program's output.

        Raises:
            NothingWrittenError: No place can be had.
        """
        for folder in self.folders:
            try:
                _make_folder(folder)
            except OSError as error:
                self.refusals[folder] = error.strerror or str(error)
            else:
                return folder
        said = "; ".join(f"{folder}: {why}" for folder, why in self.refusals.items())
        raise NothingWrittenError(said)


def _write(path: Path, data: bytes) -> None:
    _make_folder(path.parent)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _make_folder(folder: Path) -> None:
    """Create it with its parents, for the user alone.

    Raises:
        OSError: Not possible, or somebody else's folder stands there.
    """
    if not folder.is_dir():
        _make_folder(folder.parent)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            pass
        else:
            return
    # In a temporary folder that all may write to, a name may be taken by somebody else.
    state = folder.lstat()
    if folder.name.startswith("miles-watchdog-") and (
        stat.S_ISLNK(state.st_mode) or state.st_uid != os.getuid()
    ):
        raise PermissionError(f"{folder} belongs to another user")
