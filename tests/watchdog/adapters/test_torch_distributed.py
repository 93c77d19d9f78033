"""One real job of two ranks, looked at from several sides."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.xdist_group("job under torchrun")

PROGRAM = """
import json, os, sys, time
import torch, torch.distributed as dist
from watchdog.blackbox.reading import position, read_blackbox
from watchdog.section import phase, weight_sync

from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=77))
rank = dist.get_rank()
pair = dist.new_group([0, 1], timeout=timedelta(seconds=55))
alone = dist.new_group([rank], use_local_synchronization=True)
for _ in range(5):
    dist.all_reduce(torch.ones(4), group=pair)
with weight_sync():
    phase("read_weights")
    tensor = torch.full((8,), float(rank))
    dist.all_reduce(tensor, group=pair)
    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.wait()
    gathered = [None, None]
    dist.all_gather_object(gathered, rank)
    other = torch.zeros(3)
    ops = [dist.P2POp(dist.isend, torch.ones(3), 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    try:
        dist.broadcast(torch.ones(1), src=7)
    except Exception as error:
        raised = type(error).__name__
    box = read_blackbox(os.environ["BOX_DIR"] + f"/ranks/{rank}.blackbox")
    where = position(box, time.monotonic())
pid = os.fork()
if pid == 0:
    from watchdog.process_watch import current_watch
    from watchdog.recording.recorder import active
    with weight_sync():
        phase("in the child")
    ok = current_watch() is None or current_watch().identity.pid == os.getpid()
    os._exit(0 if ok else 3)
child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
after = read_blackbox(os.environ["BOX_DIR"] + f"/ranks/{rank}.blackbox")
if rank == 0:
    print(json.dumps({
        "identity": box.identity, "sum": tensor.tolist(), "gathered": gathered,
        "received": other.tolist(), "raised": raised, "phase": where.phase, "child": child,
        "phases_after": [e.name for e in after.events if e.kind == "phase"],
        "groups": [[g.name, g.ranks, g.entered, g.timeout_s] for g in box.groups.values()],
        "events": [[e.name, box.groups[e.group].name if e.group in box.groups else None,
                    e.sequence, e.num_bytes, e.call_site, e.flags, e.ended_s > 0]
                   for e in box.events if e.kind == "collective"],
    }))
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name} | {
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_DIR": str(folder / "runs"),
        "MILES_WATCHDOG_RUN": f"job-{os.getpid()}",
        "BOX_DIR": str(folder / "runs" / f"job-{os.getpid()}"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    result = subprocess.run(
        [*command, str(program)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout) | {"stderr": result.stderr, "runs": folder / "runs"}


def events(job, op):
    return [event for event in job["events"] if event[0] == op]


def test_results_are_what_they_would_be_without(job):
    assert job["sum"] == [1.0] * 8
    assert job["gathered"] == [0, 1]
    assert job["received"] == [1.0] * 3


def test_the_rank_knows_who_it_is(job):
    identity = job["identity"]

    assert (identity["rank"], identity["world_size"], identity["role"]) == (0, 2, "trainer")


def test_every_group_has_its_members_count_and_timeout(job):
    groups = {
        name: (tuple(ranks), entered, timeout_s)
        for name, ranks, entered, timeout_s in job["groups"]
    }

    # new_group, all_reduce, all_gather_object, broadcast: the group made by its members alone
    # and the sends and receives are no steps of the default group.
    assert groups[""] == ((0, 1), 4, 77)
    pair = next(value for name, value in groups.items() if name and value[0] == (0, 1))
    assert pair == ((0, 1), 6, 55)


def test_a_collective_has_its_number_in_the_group_bytes_and_call_site(job):
    (before, in_pair, posted) = events(job, "all_reduce")

    assert (before[2], in_pair[2]) == (5, 6)
    assert in_pair[3] == 32
    assert "program.py:" in in_pair[4]
    assert in_pair[4].endswith("<module>")
    assert posted[5] & 1


def test_what_torch_calls_inside_of_a_collective_is_part_of_it(job):
    assert len(events(job, "all_gather_object")) == 1
    assert events(job, "all_gather") == []


def test_sends_and_receives_have_no_number(job):
    assert [event[2] for event in events(job, "batch_isend_irecv")] == [0]
    assert events(job, "isend") == []


def test_a_collective_that_raises_raises_as_before_and_is_marked(job):
    (broadcast,) = events(job, "broadcast")

    assert job["raised"] == "RuntimeError"
    assert broadcast[5] & 2
    assert broadcast[6]


def test_a_forked_child_leaves_the_box_of_its_parent_alone(job):
    assert job["child"] == 0
    assert job["phases_after"] == ["read_weights"]


def test_the_watchdog_has_nothing_to_complain_about_and_leaves_one_line_a_sync(job):
    ours = [line for line in job["stderr"].splitlines() if line.startswith("[miles-watchdog]")]
    files = [path for path in job["runs"].rglob("*") if path.is_file()]

    assert len(ours) == 1
    assert [path.name for path in files] == ["syncs.jsonl"]
