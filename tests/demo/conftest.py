from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from watchdog.demo.job import Job


@pytest.fixture
def started(monkeypatch) -> Iterator[Callable[[str], Job]]:
    """Start a Python program as a demo's job; ended with the test, whatever happens."""
    import os

    with ExitStack() as stack:
        yield lambda program: stack.enter_context(
            Job([sys.executable, "-uc", program], dict(os.environ))
        )
