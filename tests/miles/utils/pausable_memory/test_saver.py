import ctypes
import gc
import json
import os
import signal

import numpy as np
import pytest
import torch

from miles.utils.pausable_memory.mechanism import choose_mechanism
from miles.utils.pausable_memory.saver import TorchMemorySaver
from miles.utils.residency_ledger import Ledger

BACKENDS = ["userfaultfd", "mprotect"]


@pytest.fixture
def ledger():
    return Ledger()


@pytest.fixture(params=BACKENDS)
def saver(request, ledger):
    saver = TorchMemorySaver(ledger)
    saver.configure(request.param)
    return saver


FACTORIES = {
    "empty": lambda: torch.empty(3),
    "zeros": lambda: torch.zeros(3),
    "ones": lambda: torch.ones(3, dtype=torch.bfloat16),
    "full": lambda: torch.full((2, 2), 7),
    "randn": lambda: torch.randn(3, requires_grad=True),
    "tensor": lambda: torch.tensor([1.0, 2.0]),
    "scalar": lambda: torch.tensor(1.0),
    "result": lambda: torch.ones(3) * 2 + 1,
    "clone": lambda: torch.ones(2, 3).t().clone(),
    "module": lambda: torch.nn.Linear(3, 3).weight,
    "parameter": lambda: torch.nn.Parameter(torch.zeros(3)),
}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_what_a_region_allocates_is_pausable(saver, ledger, make):
    with saver.region("weights"):
        tensor = make()

    assert ledger.find(tensor).tag == "weights"


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_a_region_changes_nothing_about_a_tensor_but_its_place(saver, make):
    torch.manual_seed(0)
    plain = make()
    torch.manual_seed(0)
    with saver.region("weights"):
        moved = make()

    for about in ("dtype", "shape", "requires_grad", "is_leaf"):
        assert getattr(moved, about) == getattr(plain, about)
    assert type(moved) is type(plain)
    assert moved.stride() == plain.stride()
    assert make is FACTORIES["empty"] or torch.equal(moved, plain)


def test_a_view_stays_on_its_base(saver, ledger):
    base = torch.ones(4)
    with saver.region("weights"):
        view = base[1:]

    assert ledger.find(view) is None
    assert view.data_ptr() == base.data_ptr() + 4


def test_memory_of_numpy_stays_shared_with_numpy(saver):
    array = np.zeros(3)
    with saver.region("weights"):
        tensor = torch.from_numpy(array)
    array[0] = 5

    assert tensor[0] == 5


def test_the_innermost_region_counts(saver, ledger):
    with saver.region("outer"):
        with saver.region("inner"):
            inner = torch.ones(3)
        outer = torch.ones(3)

    assert ledger.find(inner).tag == "inner"
    assert ledger.find(outer).tag == "outer"


def test_disable_allocates_ordinary_memory_and_pauses_nothing(saver, ledger):
    with saver.region("weights"):
        pausable = torch.ones(3)
        with saver.disable():
            ordinary = torch.ones(3)
            saver.pause()

    assert ledger.find(ordinary) is None
    assert pausable.sum() == 3


def test_only_the_named_region_is_paused(saver, ledger):
    with saver.region("a"):
        a = torch.ones(3)
    with saver.region("b"):
        b = torch.ones(3)
    saver.pause("a")

    assert ledger.find(a).is_paused
    assert b.sum() == 3
    saver.resume("a")


@pytest.mark.parametrize("target", ["cpu", "disk"])
@pytest.mark.parametrize("num_elements", [1, 1_000_003])
def test_resumed_memory_has_its_old_bytes(saver, tmp_path, target, num_elements):
    saver.configure(saver.mechanism_name, target, str(tmp_path), disk_chunk_mb=1)
    with saver.region("weights", enable_cpu_backup=True):
        weights = torch.randn(num_elements)
    before = weights.clone()

    for _ in range(2):
        saver.pause()
        saver.resume()

    assert torch.equal(weights, before)
    weights.add_(1)
    assert torch.equal(weights, before + 1)
    assert list(tmp_path.iterdir()) == []


def test_without_a_backup_zeros_come_back(saver):
    with saver.region("weights"):
        weights = torch.ones(3)
    saver.pause()
    saver.resume()

    assert weights.tolist() == [0, 0, 0]


def test_pausing_twice_and_resuming_twice_does_no_harm(saver):
    with saver.region("weights", enable_cpu_backup=True):
        weights = torch.ones(3)
    saver.resume()
    saver.pause("weights")
    saver.pause()
    saver.resume("weights")
    saver.resume()

    assert weights.tolist() == [1, 1, 1]


def test_a_host_copy_is_readable_while_paused_through_any_view(saver):
    with saver.region("weights", enable_cpu_backup=True):
        layer = torch.nn.Linear(30, 20)
    before = layer.weight.detach().clone()
    saver.pause()

    assert torch.equal(saver.get_cpu_backup(layer.weight), before)
    assert torch.equal(saver.get_cpu_backup(layer.weight[3:5].t()), before[3:5].t())
    saver.resume()
    assert saver.get_cpu_backup(layer.weight) is None


def test_no_host_copy_is_none_and_never_a_fault(saver, tmp_path):
    ordinary = torch.ones(3)
    with saver.region("bare"):
        bare = torch.ones(3)
    saver.pause("bare")
    saver.resume()
    saver.configure(saver.mechanism_name, "disk", str(tmp_path))
    with saver.region("on_disk", enable_cpu_backup=True):
        on_disk = torch.ones(3)
    saver.pause()

    assert [saver.get_cpu_backup(each) for each in (ordinary, bare, on_disk)] == [None] * 3
    saver.resume()


def test_nothing_is_paused_when_a_backup_cannot_be_written(saver, tmp_path):
    blocker = tmp_path / "file"
    blocker.touch()
    saver.configure(saver.mechanism_name, "disk", str(blocker / "below"))
    with saver.region("weights", enable_cpu_backup=True):
        weights = torch.ones(3)

    with pytest.raises(NotADirectoryError):
        saver.pause()

    assert weights.tolist() == [1, 1, 1]


def test_it_cannot_be_configured_while_anything_is_paused(saver):
    with saver.region("weights"):
        weights = torch.ones(3)
    saver.pause()

    with pytest.raises(RuntimeError, match="resume everything"):
        saver.configure()
    saver.resume()
    assert weights.numel() == 3


@pytest.mark.parametrize("paused", [False, True])
def test_memory_is_unmapped_and_forgotten_with_its_last_tensor(saver, ledger, paused):
    with saver.region("weights", enable_cpu_backup=True):
        weights = torch.ones(3_000_000)
    address = weights.data_ptr()
    view = weights[5:]
    del weights
    assert ledger.find(view).address == address
    if paused:
        saver.pause()
    del view
    gc.collect()

    assert ledger.snapshot() == {}
    with open("/proc/self/maps") as file:
        assert not any(line.startswith(f"{address:x}-") for line in file)


def test_training_works_on_pausable_memory(saver):
    with saver.region("model", enable_cpu_backup=True):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    x, y = torch.randn(64, 4), torch.ones(64, 1)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        saver.pause()
        saver.resume()

    assert losses[-1] < losses[0] / 2


def test_a_snapshot_is_json_and_names_tensors(saver, ledger):
    with saver.region("weights", enable_cpu_backup=True):
        layer = torch.nn.Linear(3, 3)
    ledger.name_tensors(layer.named_parameters())
    saver.pause()

    snapshot = json.loads(json.dumps(ledger.snapshot()))
    assert snapshot == {
        "weights": {
            "paused": True,
            "bytes": 2 * os.sysconf("SC_PAGESIZE"),
            "num_tensors": 2,
            "num_allocations": 2,
            "num_allocations_paused": 2,
            "has_backup": True,
            "backup_target": "cpu",
            "first_tensors": ["weight", "bias"],
        }
    }
    saver.resume()


def _handler(number):
    action = ctypes.create_string_buffer(256)
    ctypes.CDLL(None).sigaction(number, None, action)
    return action.raw[:8]


def test_mprotect_puts_the_previous_handlers_back():
    saver = TorchMemorySaver(Ledger())
    saver.configure("mprotect")
    before = _handler(signal.SIGSEGV), _handler(signal.SIGURG)
    with saver.region("a"):
        a = torch.ones(3)
    with saver.region("b"):
        b = torch.ones(3)

    saver.pause()
    assert _handler(signal.SIGSEGV) != before[0]
    saver.resume("a")
    assert _handler(signal.SIGSEGV) != before[0]
    del b

    assert (_handler(signal.SIGSEGV), _handler(signal.SIGURG)) == before
    assert a.tolist() == [0, 0, 0]


def test_userfaultfd_touches_no_signal_handler():
    saver = TorchMemorySaver(Ledger())
    saver.configure("userfaultfd")
    before = _handler(signal.SIGSEGV)
    with saver.region("a"):
        a = torch.ones(3)

    saver.pause()

    assert _handler(signal.SIGSEGV) == before
    saver.resume()
    assert a.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", BACKENDS)
def test_a_mechanism_is_chosen_by_name(name):
    assert choose_mechanism(name).name == name
