"""Incidents as people handed them over, and what is right to say of each."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.agreement import CASES, HERE, compare, diagnosis_of, expected
from tests.cases.perturbation import KEEPING, TAKING, Changed, Files

_LONG = {"nemo-rl-refit-never-returns"}
_CASES = [pytest.param(case, marks=pytest.mark.slow) if case in _LONG else case for case in CASES]
_SHORT = [case for case in CASES if case not in _LONG]


def files_of(case: str) -> Files:
    folder = HERE / case
    return {
        path.name: path.read_bytes().decode()
        for path in sorted(folder.iterdir())
        if path.name != "expected.json"
    }


def written(files: Files, folder: Path) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return folder


def as_changed(case: str, changed: Changed) -> dict[str, object]:
    answer = expected(case)
    for culprit in answer.get("culprits") or []:
        if "rank" in culprit:
            culprit["rank"] = changed.ranks.get(culprit["rank"], culprit["rank"])
        if "pid" in culprit:
            culprit["pid"] = changed.pids.get(culprit["pid"], culprit["pid"])
    return answer


@pytest.mark.parametrize("case", _CASES)
def test_the_answer_is_right(case: str, tmp_path: Path) -> None:
    folder = tmp_path / "incident"
    shutil.copytree(HERE / case, folder)
    (folder / "expected.json").unlink()

    found = compare(expected(case), diagnosis_of(folder))

    assert found.faults == ()


@pytest.mark.parametrize("change", KEEPING, ids=lambda change: str(change.__name__))
@pytest.mark.parametrize("case", _SHORT)
def test_the_answer_stays_right(
    case: str, change: Callable[[Files, int], Changed], tmp_path: Path
) -> None:
    changed = change(files_of(case), 7)

    found = compare(as_changed(case, changed), diagnosis_of(written(changed.files, tmp_path)))

    assert found.faults == ()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", TAKING, ids=lambda change: str(change.__name__))
@pytest.mark.parametrize("case", _SHORT)
def test_a_poorer_case_makes_no_wrong_claim(
    case: str, change: Callable[[Files, int], Changed], seed: int, tmp_path: Path
) -> None:
    changed = change(files_of(case), seed)

    found = compare(as_changed(case, changed), diagnosis_of(written(changed.files, tmp_path)))

    assert not found.is_wrong_claim, found.faults
