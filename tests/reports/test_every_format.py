"""What holds for each format and each kind of incident."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from report_cases import CASES, Case, hostile, huge, native_lora

import watchdog.reports
from watchdog.findings import Group
from watchdog.reports import REPORTS
from watchdog.reports.markdown import MAX_BYTES
from watchdog.reports.summary import PREFIX
from watchdog.reports.wrapping import fitted_call, wrapped

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


_CACHE: dict[tuple[str, str], str] = {}


def text(name: str, case: Case) -> str:
    """The rendered report; made once, as the largest case takes a while."""
    key = (name, case.name)
    if key not in _CACHE:
        _CACHE[key] = REPORTS[name].render(*case.told)
    return _CACHE[key]


@pytest.mark.parametrize("name", REPORTS)
def test_every_format_ends_with_a_line_feed_and_holds_no_control_character(name: str, case: Case):
    rendered = text(name, case)

    assert rendered.endswith("\n")
    assert not CONTROL.search(rendered)


@pytest.mark.parametrize("name", REPORTS)
def test_the_same_evidence_gives_the_same_text(name: str, case: Case):
    assert text(name, case) == REPORTS[name].render(*case.told)


@pytest.mark.parametrize("name", ["markdown", "summary", "terminal"])
def test_state_and_culprit_stand_in_the_first_three_lines(name: str, case: Case):
    top = "\n".join(text(name, case).splitlines()[:3])

    assert case.diagnosis.verdict.state.upper() in top
    for culprit in case.diagnosis.verdict.culprits[:1]:
        assert culprit.process.removeprefix("rank ") in top


@pytest.mark.parametrize("name", ["markdown", "summary", "terminal", "json"])
def test_rule_and_confidence_of_the_cause_are_in_every_format(name: str):
    rendered = text(name, native_lora())

    assert "missing-backup-lora-colocate" in rendered
    assert "confirmed" in rendered


@pytest.mark.parametrize("name", ["markdown", "summary", "terminal", "json"])
def test_an_incident_without_a_cause_claims_none(name: str):
    unknown = CASES[1]

    rendered = text(name, unknown)

    assert not re.search(r"\b(confirmed|likely|possible)\b", rendered)
    assert "py-spy dump --json --pid PID" in rendered


def test_each_module_of_the_package_with_a_render_function_is_in_the_table():
    folder = Path(watchdog.reports.__file__).parent
    formats = {p.stem for p in folder.glob("*.py") if "FILE_NAME = " in p.read_text()}

    assert formats == {report.__name__.rsplit(".", 1)[-1] for report in REPORTS.values()}


def test_file_names_differ():
    assert len({report.FILE_NAME for report in REPORTS.values()}) == len(REPORTS)


def test_a_summary_line_has_the_prefix_and_at_most_100_columns(case: Case):
    lines = text("summary", case).splitlines()

    assert all(line.startswith(PREFIX + " ") for line in lines)
    assert all(len(line) <= 100 for line in lines if not line.startswith(f"{PREFIX} report"))


def test_a_summary_is_short_whatever_the_job(case: Case):
    assert len(text("summary", case).splitlines()) <= 20


def test_the_summary_of_the_reference_incident_says_who_where_why_what_to_do_and_where_to_read():
    assert text("summary", native_lora()).splitlines() == [
        f"{PREFIX} {line}"
        for line in (
            "HUNG: rank 2 holds up 3 of 4 ranks in weight_sync",
            "culprit  rank 2 (pid 4002 on node-a): read_weights, _maybe_get_cpu_backup",
            "         (common.py:61)",
            "         the only rank that has not reached the barrier",
            "stall    weight_sync waited 5.3 s, limit 5.0 s (set)",
            "cause    missing-backup-lora-colocate, confirmed: Rank 2 reads 12 tensors of",
            "         param_buffer, which is paused and has no host copy.",
            "do       Remove --disable-weights-backuper, or keep the trainer resident (no",
            "         --colocate).",
            "waiting  ranks 0-1, 3: waiting in barrier (gloo), barrier:exit (not moving)",
            "report   /runs/run-1/incidents/weight_sync-2-7f3a/report.md",
        )
    ]


def test_markdown_fits_into_a_bug_tracker(case: Case):
    assert len(text("markdown", case).encode()) <= MAX_BYTES


def test_markdown_of_a_large_job_says_how_much_it_leaves_out():
    assert re.search(r"and \d+ more", text("markdown", huge()))


def test_quoted_text_opens_no_markup_in_markdown():
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text("markdown", hostile()), flags=re.M | re.S)
    prose = re.sub(r"(?<!\\)(`+)[^`].*?(?<!`)\1(?!`)", "", outside)

    assert set(re.findall(r"<(/?\w+)", prose)) <= {"details", "/details", "summary", "/summary"}
    assert outside.count("<details") == len(re.findall(r"^</details>$", outside, re.M))
    assert not re.search(r"@(?!<!-- -->)", prose)


def test_a_stack_cannot_close_its_own_fence():
    rendered = text("markdown", hostile())

    opened = re.findall(r"^(`{3,})text$", rendered, re.M)
    assert opened
    assert all(rendered.count(f"\n{fence}\n") >= 1 for fence in opened)


def test_rows_of_a_table_keep_their_number_of_columns():
    for block in re.findall(r"(?:^\|.*\n)+", text("markdown", hostile()), re.M):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}
        assert len(widths) == 1


def test_markup_of_the_terminal_library_is_printed_as_it_is():
    assert "[red]" in text("terminal", hostile())


def test_terminal_text_has_no_trailing_blanks(case: Case):
    assert not re.search(r"[ \t]$", text("terminal", case), re.M)


def test_json_has_the_keys_that_scripts_read(case: Case):
    report = json.loads(text("json", case))

    assert report["state"] == case.diagnosis.verdict.state
    assert [c["class"] for c in report["causes"]] == [
        cause.cause_class for cause in case.diagnosis.causes
    ]
    assert [c["rank"] for c in report["culprits"]] == [
        culprit.rank for culprit in case.diagnosis.verdict.culprits
    ]


def test_the_keys_of_the_json_do_not_depend_on_what_was_found():
    keys = {frozenset(json.loads(text("json", case))) for case in CASES}

    assert len(keys) == 1


def test_waiting_ranks_are_those_outside_of_the_culprits_group():
    report = json.loads(text("json", native_lora()))

    assert [group["ranks"] for group in report["waiting"]] == [[0, 1, 3]]


def test_beside_a_confirmed_cause_one_that_is_only_possible_takes_one_line():
    case = native_lora()
    (first,) = case.diagnosis.causes
    other = replace(first, rule="other-rule", confidence="possible", remedy="Do that.")
    told = replace(case.diagnosis, causes=(first, other))

    sure = REPORTS["terminal"].render(case.evidence, told, None)
    unsure = REPORTS["terminal"].render(
        case.evidence, replace(told, causes=(replace(first, confidence="likely"), other)), None
    )

    assert "possible (other-rule): Rank 2 reads 12 tensors" in " ".join(sure.split())
    assert "Do that." not in sure
    assert "Do that." in unsure


def test_what_to_do_stands_before_what_speaks_for_it():
    rendered = text("terminal", native_lora())

    assert rendered.index("Remove --disable-weights-backuper") < rendered.index("rank 2 stands in")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_path_is_broken_but_behind_a_slash(columns: int):
    path = "megatron/core/dist_checkpointing/strategies/a_name_of_a_module_of_some_length.py:233"

    lines = wrapped(f"at save ({path}) < load, then some more words", columns)

    assert all(len(line) <= columns for line in lines if " " in line)
    words = f"at save ({path}) < load, then some more words".split()
    for line, following in pairwise(lines):
        is_between_words = line.split()[-1] in words or following.split()[0] in words
        assert line.endswith("/") or is_between_words
    assert any("a_name_of_a_module_of_some_length.py:233" in line for line in lines)


def test_a_call_of_a_stack_keeps_its_file_name_and_line_number_in_a_narrow_terminal():
    line = "    broadcast (nemo_rl/models/policy/workers/dtensor_policy_worker_v2.py:1912)"

    assert fitted_call(line, 60) == "    broadcast (…/workers/dtensor_policy_worker_v2.py:1912)"
    assert fitted_call(line, 20) == "    broadcast (…/dtensor_policy_worker_v2.py:1912)"
    assert fitted_call(line, 100) == line
    assert fitted_call("Thread 1 (idle): no call at all", 10) == "Thread 1 (idle): no call at all"


def test_of_those_who_wait_a_summary_names_ranks_before_engines():
    case = native_lora()
    engines = Group(tuple(f"engine {n}" for n in range(8)), (), "idle (server loop)")
    verdict = replace(case.diagnosis.verdict, groups=(engines, *case.diagnosis.verdict.groups))

    rendered = REPORTS["summary"].render(
        case.evidence, replace(case.diagnosis, verdict=verdict), None
    )

    assert rendered.index("waiting  ranks 0-1, 3") < rendered.index("waiting  engines 0-7: idle")
