import threading
from dataclasses import replace

import pytest

from watchdog.blackbox.writing import BlackBox
from watchdog.guest.lost_time import LostTime
from watchdog.recording import recorder as recorder_module
from watchdog.recording.recorder import Recorder
from watchdog.settings import Settings
from watchdog.timing.deadlines import Deadlines
from watchdog.timing.monitor import THREAD_NAME, Hooks, Monitor


class Bench:
    """A monitor whose ticks and time are moved by hand."""

    def __init__(self, clock, identity, folder, **settings):
        self.clock = clock
        self.identity = identity
        self.stalls, self.suspicions, self.finished, self.late = [], [], [], []
        settings = Settings(**({"stall_after_s": 10.0} | settings))
        deadlines = Deadlines(settings)
        self.box = BlackBox.anonymous({})
        self.recorder = Recorder(self.box, lambda name: deadlines.of_section(name, None))
        self.recorder.groups.entry = lambda group: None
        self.monitor = Monitor(
            settings,
            self.recorder,
            Hooks(self.stalls.append, self.suspect, self.note, lambda: self.late.append(1)),
            deadlines=deadlines,
            identity=lambda: self.identity,
            run_folder=folder,
            clock=clock,
            submit=lambda task: task(),
        )

    def suspect(self, context):
        self.suspicions.append(context)
        return f"sample at {context.waited_s:g} s"

    def note(self, finished, incident):
        self.finished.append((finished.section.index, finished.raised, incident))

    def pass_s(self, seconds):
        for _ in range(round(seconds * 2)):
            self.clock.time_s += 0.5
            self.monitor.tick()


@pytest.fixture
def bench(clock, identity, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "_now_s", clock.now_s)
    return lambda **settings: Bench(clock, identity, tmp_path, **settings)


def test_a_section_in_time_is_no_stall(bench):
    a = bench()

    for _ in range(3):
        section = a.recorder.begin_section("weight_sync", {})
        a.pass_s(9)
        a.recorder.end_section(section, "")
    a.pass_s(100)

    assert a.stalls == []
    assert a.finished == [(1, "", None), (2, "", None), (3, "", None)]


def test_a_late_section_is_one_stall_with_place_and_time(bench):
    a = bench()
    for _ in range(2):
        section = a.recorder.begin_section("weight_sync", {})
        a.recorder.end_section(section, "")
    a.recorder.begin_section("weight_sync", {})
    a.recorder.begin_phase("read_weights")

    a.pass_s(60)

    (stall,) = a.stalls
    assert (stall.section, stall.index, stall.phase) == ("weight_sync", 3, "read_weights")
    assert (stall.waited_s, stall.deadline_s, stall.deadline_reason) == (10, 10, "set")
    assert stall.incident_id == "weight_sync-0003"
    assert stall.thread_id == threading.get_ident()
    assert a.late == [1]


def test_a_mark_does_not_restart_the_wait(bench):
    a = bench()
    a.recorder.begin_section("weight_sync", {})

    for _ in range(4):
        a.recorder.begin_phase("send_chunk")
        a.pass_s(3)

    assert len(a.stalls) == 1


def test_a_first_sample_is_taken_before_the_deadline_and_handed_over(bench):
    a = bench()
    a.recorder.begin_section("weight_sync", {})

    a.pass_s(12)

    assert [context.waited_s for context in a.suspicions] == [6]
    assert a.stalls[0].first_sample == "sample at 6 s"


def test_a_section_that_ends_after_all_names_its_incident(bench):
    a = bench()
    section = a.recorder.begin_section("weight_sync", {})
    a.pass_s(12)

    a.recorder.end_section(section, "RuntimeError")
    a.pass_s(1)

    assert a.finished == [(1, "RuntimeError", "weight_sync-0001")]


def test_incidents_of_a_run_are_bounded(bench):
    a = bench(max_incidents=2)

    for _ in range(4):
        section = a.recorder.begin_section("weight_sync", {})
        a.pass_s(12)
        a.recorder.end_section(section, "")

    assert len(a.stalls) == 2


def test_a_process_that_was_stopped_gets_one_more_look_before_it_is_judged(bench):
    a = bench()
    section = a.recorder.begin_section("weight_sync", {})

    a.clock.time_s += 3600
    a.monitor.tick()
    a.recorder.end_section(section, "")
    a.pass_s(5)

    assert a.stalls == []


def test_time_in_which_the_process_was_stopped_is_not_waited(bench):
    a = bench()
    a.recorder.begin_section("weight_sync", {})
    a.pass_s(4)

    a.clock.time_s += 3600
    a.pass_s(5)
    before = list(a.stalls)
    a.pass_s(10)

    assert before == []
    (stall,) = a.stalls
    assert 10 <= stall.waited_s <= 11


def test_time_in_which_another_thread_kept_the_gil_is_waited(bench):
    a = bench()
    used_s = iter([0.0, *(60.0 * n for n in range(1, 1000))])
    a.monitor._lost_time = LostTime(lambda: next(used_s))
    a.recorder.begin_section("weight_sync", {})

    a.clock.time_s += 60
    a.pass_s(1)

    assert len(a.stalls) == 1


def test_a_limit_is_not_learned_from_time_in_which_nothing_ran(bench):
    a = bench(stall_after_s=None)

    for _ in range(3):
        section = a.recorder.begin_section("weight_sync", {})
        a.pass_s(10)
        a.clock.time_s += 3600
        a.pass_s(10)
        a.recorder.end_section(section, "")
    a.pass_s(1)
    a.recorder.begin_section("weight_sync", {})

    assert a.recorder.open_section.deadline_s == pytest.approx(80, abs=4)


def test_a_blocking_collective_on_its_own_is_timed(bench):
    a = bench()
    a.recorder.begin_collective(threading.get_ident(), "barrier", None, 0, False, True)

    a.pass_s(12)

    (stall,) = a.stalls
    assert (stall.section, stall.index, stall.phase) == ("collective", 1, "barrier")
    assert stall.native_thread_id == threading.get_native_id()


def test_a_thread_that_listens_is_no_stall_and_hides_none(bench):
    a = bench()
    listener = threading.get_ident() + 1
    a.recorder.begin_collective(listener, "recv", None, 0, False, False)

    a.pass_s(60)
    healthy = list(a.stalls)
    a.recorder.begin_collective(threading.get_ident(), "barrier", None, 0, False, True)
    a.pass_s(12)

    assert healthy == []
    (stall,) = a.stalls
    assert (stall.phase, stall.waited_s, stall.incident_id) == ("barrier", 10, "collective-0001")
    assert stall.thread_id == threading.get_ident()


def test_the_main_thread_that_waits_in_recv_is_a_stall(bench):
    a = bench()
    a.recorder.begin_collective(threading.get_ident(), "recv", None, 0, False, False)

    a.pass_s(12)

    assert [stall.phase for stall in a.stalls] == ["recv"]


def test_a_stall_of_another_thread_does_not_hide_a_later_one_of_the_main_thread(bench):
    a = bench()
    helper = threading.get_ident() + 1
    a.recorder.begin_collective(helper, "all_reduce", None, 0, False, True)
    a.pass_s(30)

    a.recorder.begin_collective(threading.get_ident(), "barrier", None, 0, False, True)
    a.pass_s(30)

    assert [stall.phase for stall in a.stalls] == ["all_reduce", "barrier"]
    assert len({stall.incident_id for stall in a.stalls}) == 2


def test_threads_that_wait_for_one_hang_give_one_report(bench):
    a = bench()
    main = threading.get_ident()
    a.recorder.begin_collective(main, "barrier", None, 0, False, True)
    a.recorder.begin_collective(main + 1, "all_reduce", None, 0, False, True)
    a.pass_s(1)
    a.recorder.begin_collective(main + 2, "all_gather", None, 0, False, True)

    a.pass_s(60)

    assert [stall.phase for stall in a.stalls] == ["barrier"]


def test_a_wait_is_over_when_that_call_returned_whatever_other_threads_wait_in(bench):
    a = bench()
    main = threading.get_ident()
    at = a.recorder.begin_collective(main, "barrier", None, 0, False, True)
    a.pass_s(12)
    (stall,) = a.stalls
    a.recorder.begin_collective(main + 1, "recv", None, 0, False, False)
    before = stall.is_over()

    a.recorder.end_collective(main, at, False)
    after = stall.is_over()
    a.recorder.begin_collective(main, "barrier", None, 0, False, True)

    assert (before, after, stall.is_over()) == (False, True, True)


def test_a_sections_wait_is_over_when_the_section_ended(bench):
    a = bench()
    section = a.recorder.begin_section("weight_sync", {})
    a.pass_s(12)
    (stall,) = a.stalls
    before = stall.is_over()

    a.recorder.end_section(section, "")

    assert (before, stall.is_over()) == (False, True)


def test_collectives_that_return_are_not_taken_for_one(bench):
    a = bench()

    for _ in range(30):
        at = a.recorder.begin_collective(7, "barrier", None, 0, False, True)
        a.pass_s(1)
        a.recorder.end_collective(7, at, False)

    assert a.stalls == []


def test_an_idle_engine_worker_waits_in_a_collective_and_that_is_well(bench):
    a = bench()
    a.identity = replace(a.identity, role="engine_worker")
    a.recorder.begin_collective(threading.get_ident(), "broadcast", None, 0, False, True)

    a.pass_s(60)

    assert a.stalls == []


def test_collectives_on_their_own_can_be_left_alone(bench):
    a = bench(collective_after_s=float("inf"))
    a.recorder.begin_collective(7, "barrier", None, 0, False, True)

    a.pass_s(1000)

    assert a.stalls == []


def test_under_a_debugger_nothing_is_reported(bench, monkeypatch):
    a = bench()
    namespace = {"__name__": "pdb"}
    exec("def interaction(then): then()", namespace)
    a.recorder.begin_section("weight_sync", {})

    namespace["interaction"](lambda: a.pass_s(20))

    assert a.stalls == []


def test_deadlines_are_learned_from_sections_that_ended_without_an_error(bench):
    a = bench(stall_after_s=None)

    for _ in range(3):
        section = a.recorder.begin_section("weight_sync", {})
        a.pass_s(20)
        a.recorder.end_section(section, "")
    failing = a.recorder.begin_section("weight_sync", {})
    a.pass_s(70)
    a.recorder.end_section(failing, "RuntimeError")
    a.pass_s(1)
    a.recorder.begin_section("weight_sync", {})

    assert a.recorder.open_section.deadline_s == pytest.approx(80)


def test_an_error_in_a_report_ends_neither_the_thread_nor_the_program(
    clock, identity, tmp_path, capfd
):
    settings = Settings(stall_after_s=0.05)
    deadlines = Deadlines(settings)
    recorder = Recorder(BlackBox.anonymous({}), lambda name: (0.05, "set"))
    called = threading.Event()

    def fail(context):
        called.set()
        raise RuntimeError("the report failed")

    monitor = Monitor(
        settings,
        recorder,
        Hooks(fail),
        deadlines=deadlines,
        identity=lambda: identity,
        run_folder=tmp_path,
    )
    monitor.start()

    recorder.begin_section("weight_sync", {})
    assert called.wait(10)
    names = [thread.name for thread in threading.enumerate()]
    monitor.stop()

    assert THREAD_NAME in names
    assert not any("watchdog" in thread.name for thread in threading.enumerate())
    assert "the report failed" in capfd.readouterr().err
