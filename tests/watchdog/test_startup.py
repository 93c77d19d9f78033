"""The installed `.pth`, in fresh interpreters."""

import os
import subprocess
import sys

import pytest

from watchdog.startup import environ_without_watchdog


def output_of(program, **variables):
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environ | {"OMP_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.strip()


MODULES = "import sys; print(*sorted(m for m in sys.modules if m.split('.')[0] in {names!r}))"


@pytest.mark.parametrize("value", ["", "0"])
def test_off_means_that_nothing_is_imported(value):
    assert output_of(MODULES.format(names=["watchdog"]), MILES_WATCHDOG=value) == ""


def test_on_it_only_registers_callbacks():
    heavy = ["torch", "psutil", "rich", "cattrs", "click", "jinja2", "wrapt", "asyncio", "logging"]
    program = MODULES.format(names=heavy)

    assert output_of(program, MILES_WATCHDOG="1") == ""


def test_a_program_that_is_no_rank_gets_no_thread_and_no_file(tmp_path):
    program = "import faulthandler, threading; print(threading.active_count())"

    output = output_of(program, MILES_WATCHDOG="1", MILES_WATCHDOG_DIR=str(tmp_path / "runs"))

    assert output == "1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_rank_has_its_black_box_before_it_meets_the_others(tmp_path):
    program = (
        "import torch.distributed; from watchdog.process_watch import current_watch\n"
        "from watchdog.blackbox.reading import read_blackbox; box = current_watch()._box\n"
        "print(read_blackbox(box.path).rank)"
    )
    on = {"MILES_WATCHDOG": "1", "MILES_WATCHDOG_DIR": str(tmp_path), "RANK": "3"}

    assert output_of(program, **on, MILES_WATCHDOG_RUN=f"early-{os.getpid()}") == "3"


@pytest.mark.slow
def test_a_child_that_inherited_its_rank_is_not_watched(tmp_path):
    program = (
        "import torch.distributed; from watchdog.process_watch import current_watch\n"
        "print(current_watch())"
    )
    owner = f"3:{os.getpid()}"
    on = {"MILES_WATCHDOG": "1", "MILES_WATCHDOG_DIR": str(tmp_path), "RANK": "3"}

    assert output_of(program, **on, MILES_WATCHDOG_OWNER=owner) == "None"


def test_what_the_watchdog_starts_is_not_watched():
    environ = {"MILES_WATCHDOG": "1", "MILES_WATCHDOG_DIR": "d", "PATH": "p"}

    assert environ_without_watchdog(environ) == {"MILES_WATCHDOG_DIR": "d", "PATH": "p"}
