from __future__ import annotations

from dataclasses import replace

from report_cases import native_lora, unknown

from watchdog.evidence import Flag
from watchdog.reports import comparison


def told(case):
    return case.evidence, case.diagnosis


def test_an_incident_does_not_differ_from_itself():
    case = native_lora()

    assert comparison.render(told(case), told(case)) == "nothing that a report shows differs\n"


def test_a_changed_flag_is_the_only_difference():
    case = native_lora()
    flags = (case.evidence.flags[0], Flag("enable_weights_backuper", True))
    other = replace(case.evidence, flags=flags)

    text = comparison.render(told(case), (other, case.diagnosis))

    assert text == "flag enable_weights_backuper: False → True\n"


def test_state_and_culprits_of_different_incidents_are_set_side_by_side():
    lines = comparison.render(told(native_lora()), told(unknown())).splitlines()

    assert "state: hung → unknown" in lines
    assert "culprits: rank 2 → (none)" in lines
