import re
import sys
from pathlib import Path

import pytest

# The test imports its neighbours.
sys.path.insert(0, str(Path(__file__).parent))


def pytest_generate_tests(metafunc):
    """Seeds in batches; `-k seed-123` runs that seed alone."""
    if "seeds" not in metafunc.fixturenames:
        return
    asked = re.findall(r"seed-(\d+)", metafunc.config.option.keyword)
    batches = [pytest.param(range(int(one), int(one) + 1), id=f"seed-{one}") for one in asked]
    metafunc.parametrize("seeds", batches or metafunc.module.BATCHES)
