"""What to do is worded by how sure the cause is, and names nothing that does not exist."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules import cases_of_memory as memory
from tests.rules.building import GLOO_BARRIER, live, position, rank
from watchdog.diagnosis import diagnose
from watchdog.diagnosis.policy import cautious
from watchdog.findings import Confidence, Finding
from watchdog.rules import RULES
from watchdog.rules.documentation import documentation


def test_a_name_and_a_pause_alone_confirm_no_read_of_paused_memory() -> None:
    evidence = memory.paused_memory_read__fires_only_a_name_says_that_memory_is_paused()

    (cause, *_) = diagnose(evidence).causes

    assert (cause.rule, cause.confidence) == ("paused-memory-read", "likely")


def test_a_page_fault_confirms_it() -> None:
    (cause, *_) = diagnose(memory.paused_memory_read__fires_page_fault()).causes

    assert (cause.rule, cause.confidence) == ("paused-memory-read", "confirmed")


@pytest.mark.parametrize(
    ("build", "is_named"),
    [
        (memory.paused_memory_read__fires_flags_without_backup_but_a_copy, True),
        (memory.paused_memory_read__fires_page_fault, False),
        (memory.missing_backup_lora_colocate__fires_blocked_read_without_ledger, False),
    ],
)
def test_a_host_copy_is_named_only_where_the_ledger_has_one(build, is_named: bool) -> None:
    (cause, *_) = diagnose(build()).causes

    assert ("read the host copy" in cause.remedy) is is_named


def test_flags_without_backup_say_more_than_the_page_fault() -> None:
    evidence = memory.missing_backup_lora_colocate__fires_blocked_read_without_ledger()

    causes = diagnose(evidence).causes

    assert [(c.rule, c.confidence) for c in causes] == [("missing-backup-lora-colocate", "likely")]


_DO = "Drop --x. The run cannot go on: end it. Restart the engine: it will not recover."


def _finding(confidence: Confidence, remedy: str = _DO) -> Finding:
    return Finding("r", "other", confidence, "It is so.", remedy=remedy)


def test_what_is_only_possible_is_to_be_settled_first_and_ends_nothing() -> None:
    told = cautious(_finding("possible"), ("Stacks of rank 3: `py-spy dump --pid 7`", "more"))

    assert told.remedy == (
        "Only possible; to settle it first: stacks of rank 3: `py-spy dump --pid 7`. "
        "If it is this: Drop --x."
    )


@pytest.mark.parametrize("confidence", ["likely", "confirmed"])
def test_what_is_likely_or_confirmed_is_told_as_it_is(confidence: Confidence) -> None:
    assert cautious(_finding(confidence), ("More",)).remedy == _DO


def test_where_all_of_it_is_drastic_only_the_look_remains() -> None:
    told = cautious(_finding("possible", "End the run."), ())

    assert told.remedy == "Only possible: no reason to end anything."


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.rsplit(".", 1)[-1])
def test_no_rule_ends_a_run_on_a_possibility(rule) -> None:
    remedy = cautious(_finding("possible", documentation(rule).what_to_do), ()).remedy

    assert not any(words in remedy.lower() for words in ("end it", "end the run", "kill -9"))


def test_of_a_rank_that_aborted_nobody_is_sought_who_sent_the_signal() -> None:
    aborted = rank(0, status="dead", status_detail="killed by signal 6 (SIGABRT)")

    (cause, *_) = diagnose(live(aborted, rank(1, GLOO_BARRIER))).causes

    assert cause.rule == "member-killed"
    assert "standard error" in cause.remedy


def _rank_2_is_away(section: str) -> Finding:
    reads = "read_all (/data/job/loader.py:10)\nmain (/data/job/train.py:90)"
    waiting = [rank(r, GLOO_BARRIER, GLOO_BARRIER) for r in (0, 1, 3)]
    place = replace(position("load"), section=section)
    evidence = live(*waiting, rank(2, reads, reads, position=place))
    return next(c for c in diagnose(evidence).causes if c.rule == "missing-rank")


def test_of_a_rank_that_is_seen_before_the_collective_the_call_is_named_and_no_branch_asserted():
    remedy = _rank_2_is_away("weight_sync").remedy

    assert remedy.startswith(
        "Rank 2 is stuck before the collective, in read_all (/data/job/loader.py:10): find out"
    )
    assert "Only if it waits for nothing: it took another branch" in remedy


def test_of_a_rank_outside_of_the_sync_both_possibilities_are_told():
    remedy = _rank_2_is_away("").remedy

    assert "Either it is stuck in a call before the collective" in remedy
    assert "Or it took a branch" in remedy
