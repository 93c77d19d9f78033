import json

import pytest
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from miles.launchers.torchrun import _failures_in, _first_failure

LOST_PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Connection closed by peer"


@pytest.fixture
def failure(tmp_path):
    def make(rank, exitcode=1, message=None, at_s=100):
        file = tmp_path / "attempt_0" / str(rank) / "error.json"
        if message is not None:
            file.parent.mkdir(parents=True)
            extra = {"py_callstack": "", "timestamp": str(at_s)}
            file.write_text(json.dumps({"message": {"message": message, "extraInfo": extra}}))
        return ProcessFailure(rank, 1000 + rank, exitcode, str(file))

    return make


def test_the_earliest_failure_is_named(failure):
    failures = {0: failure(0, message="late", at_s=101), 1: failure(1, message="early")}

    assert _first_failure(failures) == "rank 1 failed: early"


def test_a_rank_that_lost_its_peer_is_not_named_before_the_peer(failure):
    failures = {0: failure(0, message=LOST_PEER, at_s=99), 1: failure(1, message="no memory")}

    assert _first_failure(failures) == "rank 1 failed: no memory"


def test_a_killed_rank_is_named_before_one_that_the_agent_ended(failure):
    failures = {0: failure(0, exitcode=-15, message=LOST_PEER), 1: failure(1, exitcode=-9)}

    assert _first_failure(failures).startswith("rank 1 failed: Signal 9 (SIGKILL)")


def test_a_rank_that_had_raised_but_not_ended_is_found_by_its_error_file(failure, tmp_path):
    failure(2, message="no memory")

    assert _first_failure(_failures_in(str(tmp_path))) == "rank 2 failed: no memory"
