"""What holds for all tests."""

import pytest


def pytest_collection_modifyitems(items):
    """Run a job that did not come out as claimed again, twice at most.

    The slow tests are jobs of up to a dozen processes. Where the machine is short of CPU, a
    rank may not get to the place that the test is about before the deadline; the summary line
    counts what was run again.
    """
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.flaky(reruns=2))
