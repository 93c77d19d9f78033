"""Parts of the watchdog die at random moments of an incident; the report comes all the same.

A schedule is a job of two or three ranks that hang, real processes without torch, and one to
three faults, all drawn from a seed. `pytest tests/watchdog/schedules -k seed-123` runs one alone.
"""

import pytest
from _claims import batches, outcomes
from _faults import schedule
from _scheduled_job import Zygote

BATCHES = batches(300, 5000, 30)


@pytest.fixture(scope="module")
def zygote():
    process = Zygote()
    yield process
    process.end()


@pytest.mark.flaky(reruns=0)  # a report that is lost once is lost
def test_the_report_comes_whatever_dies(zygote, seeds, tmp_path):
    failed = outcomes(zygote, tmp_path, map(schedule, seeds))

    assert not failed, "\n\n".join(failed)
