"""What a mark costs the training thread, beside the bare call. Run with `-s` to read it.

The limits asserted are far above what is measured: they catch a system call or a lock on the
hot path, not a busy machine.
"""

import statistics
import subprocess
import sys
import time

import pytest

from watchdog.adapters import torch_distributed
from watchdog.blackbox.writing import BlackBox
from watchdog.recording import recorder as recorder_module
from watchdog.recording.recorder import Recorder
from watchdog.section import phase, weight_sync

ROUNDS, CALLS = 30, 300


def median_us(function):
    def round_us():
        started_s = time.perf_counter()
        for _ in range(CALLS):
            function()
        return (time.perf_counter() - started_s) / CALLS * 1e6

    return statistics.median(round_us() for _ in range(ROUNDS))


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    box = BlackBox.create(tmp_path / "0.blackbox", {"rank": 0})
    recorder = Recorder(box)
    monkeypatch.setattr(recorder_module.active, "recorder", recorder)
    return recorder


def all_reduce(tensor, op=None, group=None, async_op=False):
    return None


def test_a_phase_mark_costs_a_few_stores(recorder):
    section = recorder.begin_section("weight_sync", {})

    cost_us = median_us(lambda: phase("read_weights"))
    recorder.end_section(section, "")

    print(f"\nphase mark: {cost_us:.2f} us")
    assert cost_us < 30


def test_a_collective_costs_a_few_stores(recorder):
    recorder.groups.entry = lambda group: None
    recorded = torch_distributed._recorded(torch_distributed.Op("all_reduce", "tensor"), all_reduce)
    section = recorder.begin_section("weight_sync", {})
    bare_us = median_us(lambda: all_reduce(None))

    cost_us = median_us(lambda: recorded(None))
    recorder.end_section(section, "")

    print(f"\ncollective: {cost_us - bare_us:.2f} us beside the bare call's {bare_us:.2f} us")
    assert cost_us - bare_us < 50


def test_a_mark_costs_next_to_nothing_when_off():
    def marked():
        with weight_sync():
            phase("read_weights")

    cost_us = median_us(marked)

    print(f"\nsection and phase, off: {cost_us:.2f} us")
    assert cost_us < 20


BESIDE_GLOO = """
import statistics, sys, time
import torch, torch.distributed as dist
from watchdog.section import weight_sync
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
tensor = torch.zeros(8)
bare = getattr(dist.all_reduce, "__wrapped__", dist.all_reduce)
def cost_us(function, calls=50):
    started_s = time.perf_counter()
    for _ in range(calls):
        function(tensor)
    return (time.perf_counter() - started_s) / calls * 1e6
bare_us, outside_us, inside_us = [], [], []
for _ in range(100):  # side by side, so that a busy machine is busy for all three
    bare_us.append(cost_us(bare))
    outside_us.append(cost_us(dist.all_reduce))
    with weight_sync():
        inside_us.append(cost_us(dist.all_reduce))
print(*map(statistics.median, (bare_us, outside_us, inside_us)))
dist.destroy_process_group()
"""


def test_a_gloo_collective_costs_little_more_when_watched(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", BESIDE_GLOO],
        env={
            "MILES_WATCHDOG": "1",
            "MILES_WATCHDOG_DIR": str(tmp_path),
            "OMP_NUM_THREADS": "1",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    bare_us, outside_us, inside_us = map(float, result.stdout.split())

    print(f"\ngloo all_reduce: bare {bare_us:.2f} us, outside +{outside_us - bare_us:.2f} us, "
          f"inside +{inside_us - bare_us:.2f} us ({inside_us / bare_us:.2f} x)")  # fmt: skip
    assert inside_us - bare_us < 100
