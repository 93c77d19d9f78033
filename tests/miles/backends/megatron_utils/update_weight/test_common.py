import pytest
import torch

from miles.backends.megatron_utils.update_weight.common import (
    _maybe_get_cpu_backup,
    named_params_and_buffers,
)
from miles.utils.arguments import parse_args


@pytest.fixture
def args():
    return parse_args([])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.register_buffer("kept", torch.ones(1))
        self.register_buffer("scratch", torch.ones(1), persistent=False)


def test_parameters_come_first_then_persistent_buffers(args):
    names = [name for name, _ in named_params_and_buffers(args, Model())]

    assert names == ["linear.weight", "linear.bias", "kept"]


def test_chunks_are_told_apart_by_their_index(args):
    chunks = [torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)]

    assert [name for name, _ in named_params_and_buffers(args, chunks)] == ["0.weight", "1.weight"]


def test_the_live_tensors_are_yielded_unless_translated(args, saver):
    with saver.region("default", enable_cpu_backup=True):
        model = Model()
    before = model.linear.weight.detach().clone()
    saver.pause()
    live = dict(named_params_and_buffers(args, model))
    copies = dict(named_params_and_buffers(args, model, translate_gpu_to_cpu=True))

    assert live["linear.weight"] is model.linear.weight
    assert torch.equal(copies["linear.weight"], before)
    assert copies["kept"].tolist() == [1]


def test_a_paused_tensor_without_a_copy_is_yielded_as_it_is(saver):
    with saver.region("default", enable_cpu_backup=False):
        bare = torch.ones(3)
    saver.pause()

    assert _maybe_get_cpu_backup(bare) is bare


def test_a_resident_tensor_is_yielded_as_it_is(saver):
    with saver.region("default", enable_cpu_backup=True):
        resident = torch.ones(3)

    assert _maybe_get_cpu_backup(resident) is resident
