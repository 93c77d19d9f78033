"""Evidence and diagnoses of several kinds, as every format has to tell them."""

from __future__ import annotations

import pytest
from report_cases import CASES, Case


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    return request.param
