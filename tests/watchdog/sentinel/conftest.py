from __future__ import annotations

import pytest

from watchdog.sentinel.sentinel import Sentinel


@pytest.fixture
def folders(tmp_path):
    local, run_folder = tmp_path / "shm" / "run", tmp_path / "dir" / "run"
    local.mkdir(parents=True)
    (run_folder / "ranks").mkdir(parents=True)
    return local, run_folder


@pytest.fixture
def sentinel(folders, tmp_path):
    """A sentinel whose speaker writes down whom it is to speak for; ticked by hand."""
    local, run_folder = folders
    spoken = tmp_path / "spoken"
    speaker = ["/bin/sh", "-c", f'echo "$0 $*" >> {spoken}']
    sentinel = Sentinel(str(local), str(run_folder), speaker)
    assert sentinel.take_lock()
    return sentinel
