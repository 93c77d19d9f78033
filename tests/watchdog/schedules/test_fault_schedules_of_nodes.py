"""The same for jobs of two nodes, which meet in a store that may die with rank 0.

The ranks are a real process group over a real store. Nodes are processes that share no folder
and know only the processes of their own.
"""

from functools import partial

import pytest
from _claims import batches, outcomes
from _faults import schedule
from _scheduled_job import Zygote

BATCHES = batches(30, 2000, 30)


@pytest.fixture(scope="module")
def zygote():
    pytest.importorskip("torch")
    process = Zygote(with_torch=True)
    yield process
    process.end()


@pytest.mark.flaky(reruns=0)  # a report that is lost once is lost
def test_every_node_has_a_report_whatever_dies(zygote, seeds, tmp_path):
    failed = outcomes(zygote, tmp_path, map(partial(schedule, num_nodes=2), seeds))

    assert not failed, "\n\n".join(failed)
