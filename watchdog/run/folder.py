"""Where the files of a run lie, and who clears them up.

    <dir>/<run>/ranks/<rank>.blackbox      link to the black box
    <dir>/<run>/ranks/<rank>.faulthandler  stack written by a C timer, only if it fired
    <dir>/<run>/syncs.jsonl
    <dir>/<run>/incidents/<id>/

Black boxes lie in shared memory (/dev/shm). A store into a mapped file of a disk may block for
as long as that disk or its server does, and training would wait for it.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path

from watchdog.blackbox.reading import read_blackbox
from watchdog.blackbox.writing import BlackBox
from watchdog.errors import WatchdogError
from watchdog.guest.notices import notice_once
from watchdog.process_identity import ProcessIdentity
from watchdog.run import dead_runs
from watchdog.run.dead_runs import SUFFIX, lives
from watchdog.run.substitute import is_ours, is_too_long, substitute_of, substitute_root
from watchdog.sentinel.leavings import ENDING_SUFFIX
from watchdog.settings import Settings

_SHARED_MEMORY = Path("/dev/shm")


class RunFolder:
    """The folder of one run, as one process of it uses it.

    Attributes:
        path: `<dir>/<run>`, absolute.
        run: Name of the run.
        name: What this process is called in `ranks/`: its rank, or role and pid.
    """

    def __init__(
        self,
        settings: Settings,
        run: str,
        identity: ProcessIdentity,
        *,
        shared_memory: Path = _SHARED_MEMORY,
    ) -> None:
        self.run = run
        self.path = _folder_of_run(settings.dir, run)
        self._identity = identity
        # By the folder as well: jobs that were given one name may lie in different ones.
        distinct = f"{run}.{zlib.crc32(os.fsencode(self.path.parent)):08x}"
        self._local = _folder_of_this_user(shared_memory) / distinct
        self.name = self._free_name()

    @property
    def ranks(self) -> Path:
        """Folder of the black boxes."""
        return self.path / "ranks"

    def identity_contents(self, identity: ProcessIdentity) -> dict[str, object]:
        """What a black box says about its process: the identity, `run`, and `run_folder`."""
        return identity.as_json() | {"run": self.run, "run_folder": str(self.path)}

    def create_blackbox(self) -> BlackBox:
        """Create the box in shared memory, else in the run folder, else in plain memory."""
        contents = self.identity_contents(self._identity)
        failures = []
        for folder in (self._local, self.ranks):
            try:
                folder.mkdir(mode=0o700 if folder is self._local else 0o755, parents=True,
                             exist_ok=True)  # fmt: skip
                _refuse_foreign(folder)
                return BlackBox.create(folder / f"{self.name}{SUFFIX}", contents)
            except OSError as error:
                failures.append(f"{folder}: {error.strerror or error}")
        notice_once(
            "blackbox",
            f"no black box that outlives rank {self._identity.rank} ({'; '.join(failures)})",
        )
        return BlackBox.anonymous(contents)

    def prepare(self, box: BlackBox) -> bool:
        """Create the folder and link the box into it.

        Returns:
            Whether that could be done; one process of the host says why not.
        """
        dead_runs.settle(self._local.parent)
        try:
            self.ranks.mkdir(parents=True, exist_ok=True)
            link = self.ranks / f"{self.name}{SUFFIX}"
            if box.path is not None and box.path != link:
                unfinished = link.with_name(f".{link.name}.{os.getpid()}")
                unfinished.unlink(missing_ok=True)
                unfinished.symlink_to(box.path)
                os.replace(unfinished, link)
                # Of a process that had this name before, in a run of the same name.
                link.with_suffix(ENDING_SUFFIX).unlink(missing_ok=True)
        except OSError as error:
            if self._identity.local_rank in (0, None):
                text = (
                    f"{self.path}: {error.strerror or error}; syncs that end are not recorded there"
                )
                notice_once("folder", text)
            return False
        return True

    def lowest_rank_here(self) -> int | None:
        """Lowest rank of the run that has a box on this host."""
        ranks = [int(path.stem) for path in self._boxes() if path.stem.isdigit()]
        return min(ranks, default=self._identity.rank)

    def leave(self) -> None:
        """Clear up after the last process of this host, if all of them ended on their own."""
        boxes = self._boxes()
        if not all(_is_done(path) for path in boxes):
            return
        for path in boxes:
            path.unlink(missing_ok=True)
            link = self.ranks / path.name
            if link.is_symlink():
                link.unlink(missing_ok=True)
        # A child that ended by `os._exit` cleared nothing up.
        for path in self.ranks.glob("*.faulthandler"):
            with contextlib.suppress(OSError):
                if path.stat().st_size == 0:
                    path.unlink()
        if not dead_runs.sentinel_lives(self._local) and not list(self._local.glob(f"*{SUFFIX}")):
            # It was killed; else it clears up after itself.
            with contextlib.suppress(OSError):
                dead_runs.remove(self._local)
        for folder in (self._local, self._local.parent, self.ranks, self.path, self.path.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _boxes(self) -> list[Path]:
        folder = self._local if self._local.is_dir() else self.ranks
        return sorted(folder.glob(f"*{SUFFIX}"))

    def _free_name(self) -> str:
        identity = self._identity
        if identity.role != "trainer" or identity.rank is None:
            return f"{identity.role}-{identity.pid}"
        for folder in (self._local, self.ranks):
            try:
                other = read_blackbox(folder / f"{identity.rank}{SUFFIX}", with_events=False)
            except WatchdogError:
                continue
            is_here = other.identity.get("host") == identity.host
            is_another = other.identity.get("pid") != identity.pid
            if is_here and is_another and not other.exited and lives(other):
                return f"{identity.rank}-{identity.pid}"
        return str(identity.rank)


def _folder_of_run(wanted: str, run: str) -> Path:
    path = Path(os.path.abspath(os.path.expanduser(wanted))) / run
    if not is_too_long(path):
        return path
    root = substitute_root()
    if not is_ours(root):
        return path
    notice_once("folder", f"a name in {wanted[:80]!r}… is too long; files are in {root} instead")
    return substitute_of(path)


def _folder_of_this_user(shared_memory: Path) -> Path:
    # Containers may share the memory without seeing each other's processes: who is alive can
    # only be told within one namespace of process ids.
    return shared_memory / f"miles-watchdog-{os.getuid()}-{os.stat('/proc/self/ns/pid').st_ino}"


def _is_done(path: Path) -> bool:
    """Whether nobody needs the box any more. A trainer that died without a word left evidence."""
    try:
        reading = read_blackbox(path, with_events=False)
    except WatchdogError:
        return False
    return reading.exited or (reading.identity.get("role") != "trainer" and not lives(reading))


def _refuse_foreign(folder: Path) -> None:
    if folder.stat().st_uid != os.getuid() and folder.is_relative_to(_SHARED_MEMORY):
        raise PermissionError(f"{folder} belongs to somebody else")
