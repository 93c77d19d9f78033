import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

CLUSTER = Path(__file__).parents[2] / "programs" / "two_node_ray_cluster.py"


def _environment(folder, mark):
    # Ray's files go there, nothing is reported, and its token is not written into the home.
    return os.environ | {
        "MILES_TEST_RUN": mark,
        "OMP_NUM_THREADS": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def _marked(mark):
    """The living processes that were started with this mark, and by what they inherited it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and f"MILES_TEST_RUN={mark}".encode() in environment:
                found.append(process)
    return found


def _kill_marked(mark):
    for process in _marked(mark):
        with contextlib.suppress(psutil.Error):
            process.kill()


@pytest.fixture(scope="session")
def ray_folder():
    """A folder with a short path: Ray's sockets lie in it, and their names are limited."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class TwoNodeCluster:
    """A Ray cluster with nodes at 127.0.0.2 and 127.0.0.3, two CPUs each."""

    def __init__(self, folder):
        self.mark = str(uuid.uuid4())
        errors = folder / "cluster.stderr"
        with errors.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, str(CLUSTER), "2"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=_environment(folder, self.mark),
                text=True,
            )
        self.address = self.process.stdout.readline().strip()
        assert self.address, errors.read_text()

    def processes(self, title):
        """Those whose command line begins so, or has it as a word."""
        found = []
        for process in _marked(self.mark):
            with contextlib.suppress(psutil.Error):
                line = process.cmdline()
                if line and (line[0].startswith(title) or title in line):
                    found.append(process)
        return found

    def ends_of(self, title, within_s=30.0):
        """What with that title is still alive after that time."""
        _, alive = psutil.wait_procs(self.processes(title), timeout=within_s)
        return alive

    def stop(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.communicate("end\n", timeout=60)
        self.process.kill()
        self.process.communicate(timeout=30)
        _kill_marked(self.mark)


@pytest.fixture(scope="session")
def two_nodes(ray_folder):
    cluster = TwoNodeCluster(ray_folder)
    yield cluster
    cluster.stop()


class RayRun:
    """`python -m miles.train --launcher ray`."""

    def __init__(self, folder, ray_folder, flags, environment):
        self.mark = str(uuid.uuid4())
        self._metrics = folder / "metrics.jsonl"
        self._output, self._errors = folder / "stdout", folder / "stderr"
        command = [sys.executable, "-u", "-m", "miles.train", "--launcher", "ray", *flags]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, "--save-metrics", str(self._metrics)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=_environment(ray_folder, self.mark) | environment,
            )

    @property
    def output(self):
        return self._output.read_text()

    @property
    def errors(self):
        return self._errors.read_text()

    def metrics(self):
        return [json.loads(line) for line in self._metrics.read_text().splitlines()]

    def wait_for(self, words, within_s=180.0):
        pause = threading.Event()
        deadline_s = time.monotonic() + within_s
        while words not in self.output:
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < deadline_s, f"not said: {words}; {self.errors}"
            pause.wait(0.05)

    def finish(self, within_s=180.0):
        return self.process.wait(timeout=within_s)

    def processes(self):
        """All of the run's own cluster, if it has one, and the driver."""
        return _marked(self.mark)

    def kill_everything(self):
        self.process.kill()
        self.process.wait(timeout=30)
        _kill_marked(self.mark)


@pytest.fixture
def start_ray_run(tmp_path, ray_folder):
    runs = []

    def start(*flags, **environment):
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(RayRun(folder, ray_folder, flags, environment))
        return runs[-1]

    yield start
    for run in runs:
        run.kill_everything()
