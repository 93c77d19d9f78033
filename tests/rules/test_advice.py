"""What to do is worded by how sure the cause is, and names nothing that does not exist."""

from __future__ import annotations

import pytest

from tests.rules import cases_of_memory as memory
from watchdog.diagnosis import diagnose


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
