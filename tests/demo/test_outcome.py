from __future__ import annotations

import pytest

from watchdog.demo.outcome import Fails, Finishes, Hangs, Outcome

HUNG = {
    "state": "hung",
    "causes": [{"class": "missing_backup", "confidence": "confirmed"}],
    "culprits": [{"rank": 2}],
}
HANGS = Hangs("missing_backup", "confirmed", (2,))


def test_the_expected_verdict_is_as_expected():
    assert HANGS.missed(Outcome(1, "", (HUNG,))) == ""


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"state": "slow"}, "state is 'slow', not 'hung'"),
        ({"culprits": [{"rank": 1}]}, "culprits is (1,), not (2,)"),
        ({"culprits": []}, "culprits is (), not (2,)"),
        ({"causes": []}, "cause is None, not 'missing_backup'; confidence is None, "
                         "not 'confirmed'"),
    ],
)  # fmt: skip
def test_another_verdict_is_told_with_what_was_wanted(changed, missed):
    assert HANGS.missed(Outcome(1, "", ({**HUNG, **changed},))) == missed


def test_the_right_culprit_with_another_cause_is_not_as_expected():
    wanted = Hangs("other", "confirmed", (2,), rule="member-stopped")
    seen = {"class": "other", "confidence": "confirmed", "rule": "member-stopped"}

    assert wanted.missed(Outcome(1, "", ({**HUNG, "causes": [seen]},))) == ""
    assert wanted.missed(
        Outcome(1, "", ({**HUNG, "causes": [{**seen, "rule": "groups-crosswise"}]},))
    )


def test_a_second_incident_is_not_as_expected():
    assert "2 incidents" in HANGS.missed(Outcome(1, "", (HUNG, HUNG)))


def test_no_incident_is_no_hang():
    assert "no incident" in HANGS.missed(Outcome(0, ""))


@pytest.mark.parametrize(
    ("outcome", "as_expected"),
    [
        (Outcome(1, "boom: refused"), True),
        (Outcome(0, "refused"), False),
        (Outcome(None, "refused"), False),
        (Outcome(1, "something else"), False),
        (Outcome(1, "refused", (HUNG,)), False),
    ],
)
def test_failing_needs_a_status_the_words_and_no_incident(outcome, as_expected):
    assert (Fails("refused").missed(outcome) == "") is as_expected


@pytest.mark.parametrize(
    ("outcome", "as_expected"),
    [
        (Outcome(0, "", (), 12), True),
        (Outcome(0, "", (), 0), False),
        (Outcome(1, "", (), 12), False),
        (Outcome(0, "", (HUNG,), 12), False),
    ],
)
def test_finishing_needs_status_0_recorded_syncs_and_no_incident(outcome, as_expected):
    assert (Finishes().missed(outcome) == "") is as_expected
