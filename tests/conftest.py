"""What holds for all tests."""

import gc

import pytest


def pytest_collection_modifyitems(items):
    """Run a job that did not come out as claimed again, twice at most.

    Such a test starts up to a dozen processes, some of which import torch. Where the machine is
    short of CPU, a rank may not get to the place that the test is about before the deadline. The
    summary line counts what was run again. Whatever runs in this process alone has one try.
    """
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture(autouse=True)
def _what_a_job_leaves_open_is_its_own_fault(request):
    """Make the warning of a file or process that a job forgot appear here, not in a later test."""
    yield
    if request.node.get_closest_marker("slow") is not None:
        gc.collect()
