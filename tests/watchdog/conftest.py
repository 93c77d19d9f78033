"""What several tests of the live half share."""

import pytest

from watchdog.process_identity import ProcessIdentity


class ManualClock:
    """Time that only the test moves."""

    def __init__(self):
        self.time_s = 1000.0

    def now_s(self):
        return self.time_s

    def wall_s(self):
        return self.time_s

    def wait(self, event, timeout_s):
        return event.wait(timeout_s)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def identity():
    return ProcessIdentity(
        rank=0,
        world_size=2,
        local_rank=0,
        host="node-1",
        pid=1,
        role="trainer",
        framework="",
        started_at_s=0.0,
        pid_started_ticks=1,
    )
