import dataclasses
import json
import os
import socket
import time
from pathlib import Path

import pytest

from watchdog.blackbox.writing import BlackBox
from watchdog.capture.target import Part
from watchdog.evidence import ActivitySample, Evidence, Frame, Gap, StackSample, ThreadStack
from watchdog.findings import Culprit, Diagnosis, Verdict
from watchdog.incident import Seams, abort, first_sample, flow, handle_stall
from watchdog.incident.leader import Leadership
from watchdog.process_identity import process_identity
from watchdog.recording.recorder import Recorder
from watchdog.serialization import evidence_from_json
from watchdog.settings import Settings
from watchdog.timing.stall_context import StallContext


def sample(function, source="py-spy"):
    thread = ThreadStack("MainThread", (Frame(function, "/x.py", 1),))
    return StackSample((thread,), source, 1.0)


def diagnosis_of(evidence: Evidence) -> Diagnosis:
    key = evidence.processes[0].key
    culprit = Culprit(key, "barrier, wait (x.py:1)", "it waits", rank=0, pid=os.getpid())
    return Diagnosis(Verdict("hung", "nothing moves", (culprit,)))


@pytest.fixture
def context(tmp_path):
    identity = process_identity({"RANK": "0", "WORLD_SIZE": "1"})
    return StallContext(
        section="weight_sync", index=1, waited_s=5.0, deadline_s=5.0, deadline_reason="set",
        phase="barrier", identity=identity, run_folder=tmp_path / "runs" / "job",
        incident_id="weight_sync-0001", settings=Settings(native="0"),
    )  # fmt: skip


class World:
    """Stand-ins for everything outside, and what was done with them."""

    def __init__(self, tmp_path):
        self.said = []
        self.ended = []
        self.native = []
        self.slept_s = 0.0
        self.part = Part(
            status="running", stacks=(sample("wait"),), activity=(ActivitySample(1.0),)
        )
        self.seams = Seams(
            capture=lambda targets, sources, timeout_s: {t.pid: self.part for t in targets},
            native=self._native,
            diagnose=diagnosis_of,
            notice=self.said.append,
            sleep=self._sleep,
            end_this_process=lambda: self.ended.append(True),
            substitute=tmp_path / "substitute",
        )

    def _native(self, pids):
        self.native.append(list(pids))
        return {pid: sample("c10d::Work::wait", "py-spy --native") for pid in pids}

    def _sleep(self, seconds):
        self.slept_s += seconds

    def but(self, **seams):
        self.seams = dataclasses.replace(self.seams, **seams)
        return self


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def files(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_stall_leaves_evidence_and_reports_and_says_where(context, world):
    result = handle_stall(context, seams=world.seams)

    assert {"evidence.json", "report.json", "report.md", "raw/rank-0.json"} <= set(
        files(result.folder)
    )
    assert result.is_leader
    assert str(result.folder / "report.md") in world.said[0]
    assert world.ended == []


def test_the_first_look_comes_before_the_second(context, world):
    first = first_sample(context, seams=world.seams)
    world.part = dataclasses.replace(world.part, stacks=(sample("later"),))

    result = handle_stall(dataclasses.replace(context, first_sample=first), seams=world.seams)

    stacks = result.evidence.processes[0].stacks
    assert [stack.threads[0].frames[0].function for stack in stacks] == ["wait", "later"]


@pytest.mark.parametrize(("native", "calls"), [("0", 0), ("auto", 1), ("1", 1)])
def test_native_frames_are_read_as_the_settings_say(context, world, native, calls):
    result = handle_stall(context, settings=Settings(native=native), seams=world.seams)

    assert world.native == [[os.getpid()]] * calls
    sources = [stack.source for stack in result.evidence.processes[0].stacks]
    assert sources.count("py-spy --native") == calls


def test_a_diagnosis_that_fails_costs_the_diagnosis_alone(context, world):
    def fail(evidence):
        raise KeyError("rule")

    result = handle_stall(context, seams=world.but(diagnose=fail).seams)

    evidence = (context.run_folder / "incidents" / "weight_sync-0001" / "evidence.json").read_text()
    assert evidence_from_json(evidence).gaps[-1] == Gap("diagnosis", "KeyError: 'rule'")
    assert "the diagnosis itself failed: KeyError: 'rule'" in world.said[0]
    assert '"unknown"' in result.report.read_text()


def test_a_second_rank_leaves_the_word_to_the_one_that_wrote_the_report(context, world):
    handle_stall(context, seams=world.seams)
    world.said.clear()

    result = handle_stall(context, seams=world.seams)

    assert not result.is_leader
    assert result.report is not None
    assert world.said == []


def test_of_all_ranks_that_find_no_report_one_says_so(context, world, monkeypatch):
    monkeypatch.setattr(flow, "_PATIENCE_S", 0.0)
    leader = Leadership(context.run_folder / "incidents" / context.incident_id)
    (context.run_folder / "incidents" / context.incident_id).mkdir(parents=True)
    assert leader.take()

    results = [handle_stall(context, seams=world.seams) for _ in range(3)]

    assert [result.report for result in results] == [None] * 3
    (said,) = world.said
    assert "no rank wrote a report" in said
    assert "rank 0" in said
    leader.give_up()


def test_one_incident_too_many_is_said_and_not_written(context, world):
    for number in range(3):
        (context.run_folder / "incidents" / f"other-{number}").mkdir(parents=True)

    result = handle_stall(context, settings=Settings(max_incidents=3), seams=world.seams)

    handle_stall(context, settings=Settings(max_incidents=3), seams=world.seams)  # another rank
    (said,) = world.said
    assert "MAX_INCIDENTS" in said
    assert result.folder is None
    assert not (context.run_folder / "incidents" / "weight_sync-0001").exists()


def test_without_any_place_the_lines_are_said_all_the_same(context, world, tmp_path):
    (tmp_path / "runs").write_text("a file")
    (tmp_path / "substitute").write_text("a file")

    result = handle_stall(context, seams=world.seams)

    assert result.folder is None
    said = "".join(world.said)
    assert "HUNG" in said
    assert "there is no report file" in said


def test_the_end_comes_after_the_report_when_its_time_is_over(context, world):
    context = dataclasses.replace(context, settings=Settings(native="0", abort_after_s=0.001))

    result = handle_stall(context, seams=world.seams)

    assert world.ended == [True]
    assert result.report.is_file()
    assert f"report: {result.report}" in world.said[-1]


def test_the_command_is_run_once_and_its_output_kept(context, world):
    settings = Settings(native="0", on_stall='printf "%s" "$MILES_WATCHDOG_INCIDENT"; exit 3')

    result = handle_stall(context, settings=settings, seams=world.seams)
    handle_stall(context, settings=settings, seams=world.seams)

    assert (result.folder / "on_stall.log").read_text() == str(result.folder)
    assert [line for line in world.said if "status 3" in line] == [world.said[1]]


def test_a_rank_of_which_nothing_came_is_looked_at_from_outside(context, world, start):
    process = start(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from watchdog.blackbox.writing import BlackBox\n"
        "from watchdog.process_identity import process_identity\n"
        "identity = process_identity({'RANK': '1', 'WORLD_SIZE': '2'}).as_json()\n"
        "box = BlackBox.create(Path(sys.argv[1]), identity | {'role': 'trainer'})\n"
        "print('ready', flush=True)\n"
        "input()\n",
        _ranks(context) / "1.blackbox",
    )
    identity = dataclasses.replace(context.identity, world_size=2)

    result = handle_stall(dataclasses.replace(context, identity=identity), seams=world.seams)

    silent = result.evidence.processes[1]
    assert (silent.key, silent.pid) == ("rank 1", process.pid)
    assert len(silent.stacks) == 2
    assert silent.host == socket.gethostname()
    assert "watchdog thread has not run" in silent.gaps[0].why


def _ranks(context):
    folder = context.run_folder / "ranks"
    folder.mkdir(parents=True)
    return folder


def test_the_two_looks_are_so_far_apart_that_movement_shows(context, world):
    taken_late = Part(status="running", activity=(ActivitySample(time.time()),))

    handle_stall(dataclasses.replace(context, first_sample=taken_late), seams=world.seams)

    assert world.slept_s > 0.5


def test_nothing_is_reported_while_the_run_is_ended_for_another_stall(context, world, tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    (local / "abort.json").write_text(json.dumps({"by": 1, "status": 86, "on_behalf_of": "rank 3"}))
    context = dataclasses.replace(context, blackbox=local / "0.blackbox")

    result = handle_stall(context, seams=world.seams)

    assert result.report is None
    assert not (context.run_folder / "incidents" / context.incident_id).exists()
    assert "being ended for another stall" in world.said[-1]


def test_a_rank_that_gave_the_order_itself_still_reports(context, world, tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    (local / "abort.json").write_text(json.dumps({"by": os.getpid(), "status": 86}))
    context = dataclasses.replace(context, blackbox=local / "0.blackbox")

    assert handle_stall(context, seams=world.seams).report is not None


def left_section(context, folder, raised=""):
    """The context of a rank whose black box says how it left the section."""
    box = BlackBox.create(folder / "0.blackbox", context.identity.as_json())
    recorder = Recorder(box)
    recorder.end_section(recorder.begin_section("weight_sync", {}), raised)
    settings = Settings(native="0", abort_after_s=600.0)
    return dataclasses.replace(context, settings=settings, is_over=lambda: True, blackbox=box.path)


def test_of_all_ranks_that_went_on_one_says_so(context, world, tmp_path):
    context = left_section(context, tmp_path)

    for _ in range(3):
        handle_stall(context, seams=world.seams)

    assert len([line for line in world.said if "went on" in line]) == 1
    assert world.ended == []


def test_a_section_that_an_exception_ended_is_said_to_have_failed(context, world, tmp_path):
    handle_stall(left_section(context, tmp_path, "RuntimeError"), seams=world.seams)

    (told,) = [line for line in world.said if "is not ended" in line]
    assert "weight_sync 1 failed: " in told
    assert [line for line in world.said if "went on" in line] == []


@pytest.mark.parametrize(
    ("took_s", "raised", "told_as"),
    [(9.0, True, "failed"), (9.0, False, "went on"), (0.1, False, "is over")],
)
def test_a_late_collective_is_not_taken_for_the_next_one(
    context, world, tmp_path, took_s, raised, told_as
):
    box = BlackBox.create(tmp_path / "0.blackbox", context.identity.as_json())
    at = box.collective(box.text("barrier"), 0, 0, 0, 1, 0, 10.0, False)
    box.collective_ended(at, 10.0 + took_s)
    if raised:
        box.collective_raised(at)
    settings = Settings(native="0", abort_after_s=600.0)
    context = dataclasses.replace(
        context, section="collective", phase="barrier", settings=settings,
        blackbox=box.path, is_over=lambda: True,
    )  # fmt: skip

    handle_stall(context, seams=world.seams)

    (told,) = [line for line in world.said if "is not ended" in line]
    assert told == f"collective 1 {told_as}: who is out of it is not ended"


def test_where_nobody_can_tell_how_it_ended_it_is_only_said_to_be_over(context, world):
    settings = Settings(native="0", abort_after_s=600.0)
    context = dataclasses.replace(context, settings=settings, is_over=lambda: True)

    handle_stall(context, seams=world.seams)

    assert "weight_sync 1 is over: who is out of it is not ended" in world.said


def test_a_wait_that_the_end_of_the_others_broke_off_did_not_go_on(context, world, tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    settings = Settings(native="0", abort_after_s=600.0)
    broken_off = dataclasses.replace(
        context, settings=settings, blackbox=local / "0.blackbox", is_over=lambda: True
    )
    handle_stall(broken_off, seams=world.seams)
    (local / "abort.json").write_text(json.dumps({"by": 1, "on_behalf_of": "rank 3"}))
    world.said.clear()
    (context.run_folder / "incidents" / context.incident_id / ".said-went-on").unlink()

    handle_stall(broken_off, seams=world.seams)

    assert [line for line in world.said if "went on" in line] == []


def test_a_rank_that_is_not_the_first_waits_for_the_order_to_end(context, tmp_path):
    context = dataclasses.replace(context, blackbox=tmp_path / "1.blackbox")
    order = {"by": 1, "on_behalf_of": "rank 0"}

    is_ordered = abort.is_ordered_soon(
        context, sleep=lambda _: (tmp_path / "abort.json").write_text(json.dumps(order))
    )

    assert is_ordered


def test_where_the_first_gives_no_order_another_does_not_wait_for_ever(context, tmp_path):
    context = dataclasses.replace(context, blackbox=tmp_path / "1.blackbox")
    naps = []

    assert not abort.is_ordered_soon(context, sleep=naps.append, within_s=0.01)
    assert naps
