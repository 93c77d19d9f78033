"""What the sentinel notes of the processes beside the ranks."""

import os
import sys

import pytest

from watchdog.process_identity import started_ticks
from watchdog.sentinel.run_roster import Noted, Roster, missed, read_roster

WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"
SERVER = ("python", "-m", "sglang.launch_server", "--port")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "processes.json")


@pytest.fixture
def run():
    # Whoever runs these tests beside us starts processes of another run.
    return f"roster-{os.getpid()}"


def noted(ticks, ended_s=0.0, port="1", parent=9, noted_s=0.0):
    return Noted(ticks, parent, ticks, (*SERVER, port), noted_s, ended_s)


def test_an_engine_is_noted_by_the_name_of_its_run_and_its_end_too(start, path, run):
    engine = start(WAITS, "sglang.launch_server", env={"MILES_WATCHDOG_RUN": run})
    start(WAITS, "sglang.launch_server", env={"MILES_WATCHDOG_RUN": "another"})
    roster = Roster(path, run)

    roster.look(0.0, [])
    (running,) = read_roster(path)
    engine.kill()
    engine.wait(20)
    roster.look(1.0, [])
    (ended,) = read_roster(path)

    assert running == Noted(
        engine.pid, os.getpid(), running.ticks, (sys.executable, *running.words[1:])
    )
    assert ended == running._replace(ended_s=1.0)


def test_an_engine_without_that_name_is_noted_as_a_sibling_of_a_rank(start, path, run):
    rank = start(WAITS)
    engine = start(WAITS, "sglang.launch_server")

    Roster(path, run).look(0.0, [rank.pid])

    assert [one.pid for one in read_roster(path)] == [engine.pid]
    assert [one.ticks for one in read_roster(path)] == [started_ticks(engine.pid)]


def test_what_is_no_engine_is_not_written_down(start, path, run):
    start(WAITS, env={"MILES_WATCHDOG_RUN": run})

    Roster(path, run).look(0.0, [])

    assert read_roster(path) == ()


def test_an_engine_that_ended_just_now_is_missed():
    assert missed([noted(1, ended_s=50.0)], now_s=60.0) == (noted(1, ended_s=50.0),)


def test_an_engine_that_was_started_anew_is_not_missed():
    assert missed([noted(1, ended_s=50.0), noted(2, port="2")], now_s=60.0) == ()


def test_an_engine_that_ended_long_ago_is_not_missed():
    assert missed([noted(1, ended_s=50.0)], now_s=5000.0) == ()


def test_a_tool_of_the_same_name_is_not_missed():
    assert missed([noted(1, noted_s=48.0, ended_s=50.0)], now_s=60.0) == ()


def test_what_an_engine_started_is_not_missed():
    assert missed([noted(1), noted(2, parent=1, ended_s=50.0)], now_s=60.0) == ()


def test_a_file_that_was_cut_is_no_roster(path):
    with open(path, "w") as file:
        file.write('[[1, 2, 3, ["a"')

    assert read_roster(path) == ()
