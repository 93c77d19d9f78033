from __future__ import annotations

from dataclasses import replace

import pytest
from report_cases import BARRIER, READ, native_lora, trainer

from watchdog.evidence import (
    ActivitySample,
    Frame,
    Gap,
    Process,
    StackSample,
    ThreadActivity,
    ThreadStack,
)
from watchdog.findings import Group
from watchdog.reports import wording
from watchdog.reports.limits import STEPS
from watchdog.reports.stack_text import culprit_details, frame_text, group_stacks, stack_text


def process_with(*threads: ThreadStack) -> Process:
    return Process("rank 0", "trainer", 0, stacks=(StackSample(threads, "py-spy"),))


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/opt/env/lib/python3.11/site-packages/torch/a.py", "f (torch/a.py:3)"),
        ("/usr/lib/python3/dist-packages/yaml/b.py", "f (yaml/b.py:3)"),
        ("/usr/lib/python3.11/threading.py", "f (threading.py:3)"),
        ("/home/me/train/miles/a.py", "f (/home/me/train/miles/a.py:3)"),
        ("", "f (:3)"),
    ],
)
def test_an_installed_file_is_told_from_its_package_on(file, shown):
    assert frame_text(Frame("f", file, 3)) == shown


def test_a_native_symbol_loses_its_template_arguments():
    symbol = "c10::impl::call<at::Tensor (std::optional<long>)>::run"

    assert frame_text(Frame(symbol, "libc10.so", native=True)) == "c10::impl::call::run (libc10.so)"


def test_a_run_of_native_calls_is_folded_and_counted():
    native = tuple(Frame(f"n{i}", "libtorch.so", native=True) for i in range(20))
    thread = ThreadStack("MainThread", (*native, *READ))

    lines = stack_text(process_with(thread), "", STEPS[0]).splitlines()

    assert [line.strip() for line in lines[3:6]] == [
        "n2 (libtorch.so)",
        "(17 more native calls)",
        f"{frame_text(READ[0])}",
    ]


def test_the_thread_that_stands_in_the_place_comes_first():
    other, telling = ThreadStack("a", BARRIER), ThreadStack("b", READ)

    text = stack_text(
        process_with(other, telling), "_maybe_get_cpu_backup (common.py:61)", STEPS[0]
    )

    assert text.index('"b"') < text.index('"a"')


def test_the_main_thread_comes_first_where_no_place_is_known():
    text = stack_text(process_with(ThreadStack("a", READ), ThreadStack("MainThread", READ)), "",
                      STEPS[0])  # fmt: skip

    assert text.index("MainThread") < text.index('"a"')


def test_the_watchdogs_own_thread_is_left_out_unless_it_is_the_only_one():
    own = ThreadStack("weight-sync-watchdog", BARRIER)

    assert "watchdog" not in stack_text(process_with(own, ThreadStack("a", READ)), "", STEPS[0])
    assert "watchdog" in stack_text(process_with(own), "", STEPS[0])


def test_a_stack_is_shown_once_for_all_ranks_that_do_the_same():
    case = native_lora()

    blocks = group_stacks(case.evidence, case.diagnosis, STEPS[0])

    assert [block.title.split(":")[0] for block in blocks] == ["rank 2", "ranks 0-1, 3"]


def test_the_state_of_a_culprit_holds_memory_kernel_and_history():
    case = native_lora()

    (block,) = culprit_details(case.evidence, case.diagnosis, STEPS[0])

    assert "memory param_buffer: paused_without_copy, 1.5 MiB, 12 tensors" in block.text
    assert "handle_userfault" in block.text
    assert "phase read_weights" in block.text


def test_threads_that_sleep_where_all_do_are_not_worth_a_line():
    case = native_lora()
    evidence = case.evidence.__class__("files", (trainer(2, BARRIER, ""),))

    (block,) = culprit_details(evidence, case.diagnosis, STEPS[0])

    assert "kernel" not in block.text


def test_gaps_that_differ_by_the_name_of_the_process_only_are_told_once():
    processes = tuple(
        Process(f"rank {r}", "trainer", r, gaps=(Gap(f"memory of rank {r}", "refused"),))
        for r in (0, 1, 2, 5)
    )
    evidence = native_lora().evidence.__class__("watchdog", processes)

    assert wording.all_gaps(evidence) == [("ranks 0-2, 5", Gap("memory", "refused"))]


@pytest.mark.parametrize(
    ("where", "short"),
    [("a", "a"), ("a (f:1) < b < c", "a (f:1) < b < c"), ("a < b < c < d", "a < b < …")],
)
def test_a_long_place_is_told_by_its_innermost_calls(where, short):
    assert wording.short_where(where) == short


def test_the_main_thread_is_told_wherever_it_sleeps_and_our_own_threads_nowhere():
    threads = (
        ThreadActivity(7, "weight-sync-wd", "D", "pipe_read"),
        ThreadActivity(4, "python", "S", "futex_wait_queue"),
    )
    case = native_lora()
    process = replace(trainer(2, READ, ""), pid=4, activity=(ActivitySample(threads=threads),))
    evidence = replace(case.evidence, processes=(process,))

    (block,) = culprit_details(evidence, case.diagnosis, STEPS[0])

    kernel = [line for line in block.text.splitlines() if line.startswith("kernel:")]
    assert kernel == ["kernel: thread 4 python S futex_wait_queue"]


def test_what_speaks_for_two_causes_is_told_once():
    first = native_lora().diagnosis.causes[0]
    second = replace(first, supports=(first.supports[0], "something else"))

    (_, one), (_, two), (_, three) = wording.new_supports((first, second, second))

    assert one == list(first.supports)
    assert two == ["something else", "1 of the above"]
    assert three == ["2 of the above"]


@pytest.mark.parametrize(
    ("doing", "where", "words"),
    [
        ("waiting in barrier", "barrier < update (a.py:3)", "waiting in barrier < update (a.py:3)"),
        ("on device (sync)", "sync < f", "on device: sync < f"),
        ("idle (loop)", "recv < g", "idle (loop), recv < g"),
        ("dead", "", "dead"),
    ],
)
def test_a_call_that_ends_what_is_done_and_begins_the_place_is_told_once(doing, where, words):
    assert wording.group_words(Group(("rank 0",), (0,), doing, where)) == words


def test_engines_are_told_as_ranges_as_ranks_are():
    keys = (*(f"engine {n}" for n in (0, 1, 2, 5)), "engine 1 worker 0", "driver")

    assert wording.group_label(Group(keys, (), "idle")) == (
        "engines 0-2, 5, engine 1 worker 0, driver"
    )


def test_a_reason_that_only_repeats_the_culprits_sentence_is_left_out():
    verdict = native_lora().diagnosis.verdict
    (culprit,) = verdict.culprits
    same = replace(
        verdict, reason="Rank 2: blocked.", culprits=(replace(culprit, why="Rank 2 is blocked"),)
    )

    assert wording.new_reason(same) == ""
    assert wording.new_reason(replace(same, reason="Rank 3: gone.")) == "Rank 3: gone."


@pytest.mark.parametrize(
    ("reason", "is_told"),
    [
        ("rank 2: blocked in read_it, while the others are elsewhere.", False),
        ("rank 2 is not blocked in read_it.", True),
        ("rank 2 and rank 7 are blocked in read_it.", True),
        ("Two samples are the same on every rank.", True),
    ],
)
def test_a_reason_is_told_where_it_says_something_new(reason, is_told):
    verdict = native_lora().diagnosis.verdict
    culprit = replace(verdict.culprits[0], why="rank 2 is blocked in read_it, the others wait")
    told = replace(verdict, reason=reason, culprits=(culprit,))

    assert bool(wording.new_reason(told)) == is_told
