import os
import signal
import struct
import subprocess
import sys

import pytest

from watchdog.blackbox import layout
from watchdog.blackbox.reading import collectives, position, read_blackbox
from watchdog.blackbox.writing import BlackBox
from watchdog.errors import UnusableInputError
from watchdog.recording.recorder import Recorder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "3.blackbox"


@pytest.fixture
def box(path):
    return BlackBox.create(path, {"rank": 3, "world_size": 4, "host": "node-1"})


def test_a_new_box_says_who_it_belongs_to_and_nothing_else(box, path):
    reading = read_blackbox(path)

    assert reading.rank == 3
    assert reading.identity["host"] == "node-1"
    assert (reading.section, reading.collective, reading.events) == ("", None, ())
    assert position(reading, 0.0).history == ()


def test_it_says_where_the_rank_is(box, path):
    recorder = Recorder(box)
    recorder.begin_section("weight_sync", {})
    recorder.begin_phase("read_weights")

    reading = read_blackbox(path)
    where = position(reading, reading.phase_began_s + 7)

    assert (where.section, where.section_index, where.phase) == ("weight_sync", 1, "read_weights")
    assert where.phase_age_s == pytest.approx(7)
    assert [mark.kind for mark in where.history] == ["section", "phase"]


def test_a_collective_that_has_not_returned_is_waiting(box, path):
    box.group(0, box.text("gloo"), 0, (0, 1, 2, 3), 1800.0)
    at = box.collective(box.text("barrier"), 0, box.text("sync.py:3 sync"), 0, 5, 0, 10.0, True)

    waiting = position(read_blackbox(path), 14.0).collective
    box.collective_ended(at, 15.0)
    returned = position(read_blackbox(path), 16.0).collective

    assert (waiting.op, waiting.group, waiting.sequence) == (
        "barrier",
        "group gloo of ranks 0-3",
        5,
    )
    assert waiting.group_ranks == (0, 1, 2, 3)
    assert waiting.call_site == "sync.py:3 sync"
    assert (waiting.finished, waiting.waited_s) == (False, 4.0)
    assert (returned.finished, returned.waited_s) == (True, None)


def test_the_last_collective_before_a_section_is_kept(box, path):
    recorder = Recorder(box)
    recorder.groups.entry = lambda group: None
    for op in ("all_reduce", "barrier"):
        recorder.end_collective(1, recorder.begin_collective(1, op, None, 0, False, True), False)
    recorder.begin_section("weight_sync", {})

    reading = read_blackbox(path)

    assert [event.name for event in reading.events] == ["barrier", "weight_sync"]
    assert [one.op for one in collectives(reading, 0.0)] == ["barrier"]


def test_the_ring_keeps_the_last_512_events(box, path):
    for number in range(2000):
        box.event(layout.NOTE, 0, float(number))

    events = read_blackbox(path).events

    assert [event.at_s for event in events] == [float(number) for number in range(1488, 2000)]


def test_a_torn_event_is_left_out_and_counted(box, path):
    at = [box.event(layout.NOTE, 0, float(number)) for number in range(3)]
    with open(path, "r+b") as file:
        file.seek(at[1])
        file.write(struct.pack("<Q", 514))

    reading = read_blackbox(path)

    assert [event.at_s for event in reading.events] == [0.0, 2.0]
    assert reading.num_torn == 1


def test_the_table_of_texts_may_fill_up(box, path):
    numbers = [box.text(f"text {number}") for number in range(2000)]

    assert numbers[:3] == [1, 2, 3]
    assert numbers[-1] == 0
    assert box.text("text 5") == 6


def test_a_text_that_is_too_long_is_cut(box, path):
    box.section(box.text("ä" * 500), 0, 1, 0.0, 0.0, 0.0, 0)

    assert read_blackbox(path).section.startswith("ä" * 90)


@pytest.mark.parametrize(
    "ranks", [(), (0,), (0, 1), tuple(range(256)), tuple(range(3, 256, 8)), (0, 3, 4)]
)
def test_ranks_are_written_short_and_read_back(ranks):
    text = layout.ranks_text(ranks)

    assert layout.ranks_from(text) == ranks
    assert len(text) < 30


def test_ranks_that_do_not_fit_are_cut_at_a_whole_rank():
    ranks = tuple(number * number for number in range(300))

    assert layout.ranks_from(layout.ranks_text(ranks)) == ranks[:101]


@pytest.mark.parametrize("content", [b"", b"x" * layout.SIZE, b"MWDGBOX\0" + b"\xff" * layout.SIZE])
def test_another_file_is_refused(path, content):
    path.write_bytes(content)

    with pytest.raises(UnusableInputError, match=r"3\.blackbox"):
        read_blackbox(path)


def test_a_missing_file_is_refused(path):
    with pytest.raises(UnusableInputError, match="No such file"):
        read_blackbox(path)


def test_it_survives_kill_9(path):
    program = (
        "import sys; from pathlib import Path; from watchdog.blackbox.writing import BlackBox\n"
        "from watchdog.recording.recorder import Recorder\n"
        "recorder = Recorder(BlackBox.create(Path(sys.argv[1]), {'rank': 3}))\n"
        "recorder.begin_section('weight_sync', {}); recorder.begin_phase('read_weights')\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=30)

    reading = read_blackbox(path)

    assert (reading.section, reading.phase) == ("weight_sync", "read_weights")


def test_a_reader_needs_the_standard_library_only():
    program = (
        "import sys; before = set(sys.modules); import watchdog.blackbox.reading\n"
        "third = {m.split('.')[0] for m in set(sys.modules) - before} - set("
        "sys.stdlib_module_names) - {'watchdog'}; print(third)"
    )

    output = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout

    assert output == "set()\n"
