import asyncio
import os
import subprocess
import sys
import threading

import pytest

from watchdog import process_watch, section
from watchdog.process_identity import process_identity
from watchdog.recording.recorder import FinishedSection, OpenSection, active
from watchdog.section import phase, weight_sync


@pytest.fixture
def watch(tmp_path, monkeypatch):
    monkeypatch.setenv("MILES_WATCHDOG", "1")
    monkeypatch.setenv("MILES_WATCHDOG_DIR", str(tmp_path))
    monkeypatch.setenv("MILES_WATCHDOG_RUN", "a-run")
    monkeypatch.setenv("RANK", "0")
    # The watch writes it for children of this process: only a name that was set is unset again.
    monkeypatch.setenv("MILES_WATCHDOG_OWNER", "")
    monkeypatch.setattr(section, "_is_on", True)
    monkeypatch.setattr(process_watch, "_is_over", False)
    yield process_watch.ensure_started()
    process_watch.stop()


def history(watch):
    events = active.recorder._box.reading().events
    return [(event.kind, event.name) for event in events]


def test_phases_last_until_the_next_mark(watch):
    with weight_sync():
        phase("pause_generation")
        phase("read_weights")

    assert history(watch) == [
        ("section", "weight_sync"),
        ("phase", "pause_generation"),
        ("phase", "read_weights"),
        ("section_end", "weight_sync"),
    ]


def test_a_phase_with_a_block_restores_the_outer_one(watch):
    with weight_sync():
        phase("read_weights")
        with phase("send_chunk"):
            assert active.recorder.open_section.phase == "send_chunk"
        assert active.recorder.open_section.phase == "read_weights"


def test_a_nested_section_is_part_of_the_outer_one(watch):
    with weight_sync():
        with weight_sync():
            phase("inner")
        assert active.recorder.open_section.index == 1
        assert active.recorder.open_section.num_nested == 1

    assert active.recorder.open_section is None


def test_a_section_of_another_thread_is_nested_too(watch):
    def other():
        with weight_sync():
            pass

    with weight_sync():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        assert active.recorder.open_section is not None


def test_exceptions_pass_through_untouched_and_end_the_section(watch):
    error = ValueError("of the host")

    with pytest.raises(ValueError, match="of the host") as caught, weight_sync():
        raise error

    assert caught.value is error
    assert active.recorder.open_section is None
    assert active.recorder._box.reading().events[-1].flags


def test_a_decorated_function_is_one_section_a_call(watch):
    @weight_sync()
    def sync(value):
        """Docstring."""
        return value

    assert [sync(1), sync(2)] == [1, 2]
    assert sync.__doc__ == "Docstring."
    assert [name for kind, name in history(watch) if kind == "section"] == ["weight_sync"] * 2


def test_a_decorated_async_function_is_in_the_section_until_it_is_done(watch):
    @weight_sync()
    async def sync():
        await asyncio.sleep(0)
        return active.recorder.open_section

    assert asyncio.run(sync()).name == "weight_sync"
    assert active.recorder.open_section is None


def test_a_phase_outside_of_a_section_does_nothing(watch):
    with phase("read_weights"):
        pass

    assert history(watch) == []


FAILING_MARKS = """
from watchdog.process_watch import ensure_started
from watchdog.recording.recorder import active
from watchdog.section import phase, weight_sync

ensure_started()
active.recorder._box.event = lambda *args, **kwargs: 1 / 0
for _ in range(3):
    with weight_sync():
        phase("read_weights")
print("trained")
"""


def test_a_mark_that_fails_is_reported_once_and_swallowed(tmp_path):
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name}
    watched = {"MILES_WATCHDOG": "1", "MILES_WATCHDOG_DIR": str(tmp_path), "RANK": "0"}

    ran = subprocess.run(
        [sys.executable, "-c", FAILING_MARKS],
        env=environ | watched, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert (ran.returncode, ran.stdout) == (0, "trained\n")
    assert ran.stderr.count("ZeroDivisionError") == 1, ran.stderr


def end_of_stall(raised):
    stalled = OpenSection("weight_sync", 3, 10.0, 5.0, "set", 1, 1, {})
    finished = FinishedSection(stalled, 17.5, raised)
    return process_watch._end_of_stall(finished, process_identity({"RANK": "1"}))


def test_a_stall_that_resolves_is_told_as_a_recovery():
    assert end_of_stall("") == "weight_sync 3 ended after all in rank 1, after 7.5 s"


def test_a_stall_that_ends_by_an_exception_is_told_as_a_failure():
    assert (
        end_of_stall("RuntimeError") == "weight_sync 3 failed in rank 1 after 7.5 s: RuntimeError"
    )


def test_when_it_is_off_nothing_starts(monkeypatch, tmp_path):
    monkeypatch.delenv("MILES_WATCHDOG", raising=False)
    monkeypatch.chdir(tmp_path)

    with weight_sync():
        phase("read_weights")

    assert process_watch.current_watch() is None
    assert list(tmp_path.iterdir()) == []


def test_healthy_syncs_leave_one_line_each_and_nothing_else(watch, tmp_path):
    for _ in range(20):
        with weight_sync():
            phase("read_weights")
    process_watch.stop()

    (only,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    lines = only.read_text().splitlines()

    assert only == tmp_path / "a-run" / "syncs.jsonl"
    assert len(lines) == 20
    assert '"read_weights"' in lines[0]
    assert not any("watchdog" in thread.name for thread in threading.enumerate())


def test_a_phase_that_is_marked_again_is_counted_and_no_new_event(watch):
    with weight_sync():
        for _ in range(2000):
            phase("read_weights")
        phase("send_chunk")

    events = active.recorder._box.reading().events
    (read,) = [event for event in events if event.name == "read_weights"]
    assert read.sequence == 2000
    assert read.ended_s > read.at_s
    assert len(events) == 4


def test_the_way_back_to_no_phase_is_no_event(watch):
    with weight_sync():
        for _ in range(3):
            with phase("read_weights"):
                pass
            assert active.recorder.open_section.phase == ""

    assert history(watch) == [
        ("section", "weight_sync"),
        ("phase", "read_weights"),
        ("section_end", "weight_sync"),
    ]


def test_a_phase_whose_event_the_ring_has_overwritten_gets_a_new_one(watch):
    with weight_sync():
        phase("read_weights")
        for number in range(600):
            active.recorder.note(f"{number}")
        phase("read_weights")

    events = active.recorder._box.reading().events
    assert [event.sequence for event in events if event.kind == "phase"] == [1]
    assert len({event.number for event in events}) == len(events)
