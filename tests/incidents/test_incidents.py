"""More incidents, of other frameworks and with other names than the cases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cases.agreement import compare, diagnosis_of

HERE = Path(__file__).parent
INCIDENTS = sorted(path.parent.name for path in HERE.glob("*/expected.json"))


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_answer_is_right(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "incident"
    shutil.copytree(HERE / name, folder)
    (folder / "expected.json").unlink()

    found = compare(json.loads((HERE / name / "expected.json").read_text()), diagnosis_of(folder))

    assert found.faults == ()
