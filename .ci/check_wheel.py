"""Install the built wheel into environments of its own and see that it keeps its promises.

Usage: `python .ci/check_wheel.py dist/miles_watchdog-….whl`. Exit status 0 when all hold.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

# Every module imports without torch, and `miles` is not in the wheel.
IMPORT_ALL = """
import importlib, importlib.util, pkgutil, sys
import watchdog
names = [m.name for m in pkgutil.walk_packages(watchdog.__path__, "watchdog.")]
for name in names:
    importlib.import_module(name)
assert len(names) > 20, names
assert "torch" not in sys.modules and importlib.util.find_spec("torch") is None
assert importlib.util.find_spec("miles") is None, "the wheel carries miles"
reserved = {"__main__", "events", "observers", "tricks", "utils", "version", "watchmedo"}
assert not reserved & {name.split(".")[1] for name in names}, "a name of the other watchdog"
print(len(names), "modules import without torch")
"""

START_UP_HOOK = """
import site, pathlib
(folder,) = {p for p in site.getsitepackages()}
assert (pathlib.Path(folder) / "miles_watchdog_startup.pth").exists()
assert (pathlib.Path(folder) / "watchdog" / "py.typed").exists()
"""

OURS = "import watchdog.section, watchdog.cli, watchdog.reports, watchdog.startup"
# `watchmedo` and `Observer` are what people use of the other distribution.
THEIRS = "import watchdog.events, watchdog.observers; watchdog.observers.Observer"


class Environment:
    """A virtual environment that is empty but for pip."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self._bin = folder / "bin"
        self._cwd = folder / "empty"
        self._cwd.mkdir()

    def pip(self, *arguments: str) -> None:
        """Run pip quietly."""
        self.run("python", "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)

    def python(self, program: str, **environ: str) -> str:
        """Run a program outside of the source tree; returns what it printed, stderr included."""
        return self.run("python", "-c", program, **environ)

    def run(self, *command: str, **environ: str) -> str:
        """Run a command of the environment; ends this check when it fails."""
        done = subprocess.run(
            [str(self._bin / command[0]), *command[1:]],
            cwd=self._cwd,
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)[:300]}\nended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def left_files(self) -> list[str]:
        """What the programs so far have left in their working folder."""
        return sorted(path.name for path in self._cwd.iterdir())


def check_alone(wheel: str, folder: Path) -> None:
    """The wheel and its dependencies, nothing else."""
    environment = Environment(folder)
    environment.pip("install", wheel)
    print(environment.python(IMPORT_ALL).strip())
    environment.python(START_UP_HOOK)
    for value in ("", "0", "1"):
        printed = environment.python("pass", MILES_WATCHDOG=value)
        assert printed == "", f"MILES_WATCHDOG={value} python -c pass printed {printed!r}"
    assert environment.left_files() == [], environment.left_files()
    assert "miles-watchdog, version" in environment.run("miles-watchdog", "--version")
    environment.run("miles-watchdog", "rules")
    environment.run("miles-watchdog", "settings")


def check_neighbour(wheel: str, folder: Path) -> None:
    """Both distributions work, whichever is installed, reinstalled or removed first."""
    environment = Environment(folder)
    ours = ("install", "--force-reinstall", "--no-deps", wheel)
    theirs = ("install", "--force-reinstall", "watchdog")
    environment.pip("install", wheel)
    for step in (theirs, ours, theirs):
        environment.pip(*step)
        environment.python(OURS)
        environment.python(THEIRS)
    environment.pip("uninstall", "--yes", "watchdog")
    environment.python(OURS)
    environment.pip(*theirs)
    environment.pip("uninstall", "--yes", "miles-watchdog")
    environment.python(THEIRS)
    environment.pip(*ours)
    environment.python(OURS)
    environment.python(THEIRS)
    print("works beside the other watchdog, before and after it")


def main() -> None:
    """Run both checks."""
    wheel = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        check_alone(wheel, Path(scratch, "alone"))
        check_neighbour(wheel, Path(scratch, "neighbour"))


if __name__ == "__main__":
    main()
