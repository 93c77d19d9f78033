import pytest
import torch

from miles.backends.megatron_utils.param_and_grad_buffer import (
    DistributedDataParallelConfig,
    ParamAndGradBuffer,
)
from miles.utils.arguments import parse_args
from miles.utils.residency import classify, residency_snapshot


def make_model():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    model[0].bias.requires_grad_(False)
    return model


def make_buffer(model, **config):
    return ParamAndGradBuffer(
        DistributedDataParallelConfig(**config), list(model.named_parameters())
    )


def test_parameters_keep_their_values_and_move_into_one_buffer(saver):
    model = make_model()
    before = {name: param.detach().clone() for name, param in model.named_parameters()}
    buffer = make_buffer(model, pausable=True)

    assert buffer.names == ["0.weight", "1.weight", "1.bias"]
    assert buffer.param_data.numel() == buffer.grad_data.numel() == 12 + 8 + 2
    for name, param in model.named_parameters():
        assert torch.equal(param, before[name])
    assert classify(model[1].bias).tag == "param_buffer"
    assert classify(model[1].bias.grad).tag == "grad_buffer"
    assert classify(model[0].bias).tag is None


def test_training_goes_through_the_buffers(saver):
    model = make_model()
    buffer = make_buffer(model, pausable=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = buffer.param_data.clone()

    model(torch.ones(1, 3)).sum().backward()
    assert buffer.grad_data.abs().sum() > 0
    optimizer.step()
    buffer.zero_grad()

    assert not torch.equal(buffer.param_data, before)
    assert model[1].weight.grad.abs().sum() == 0


@pytest.mark.parametrize("params_disabled", [False, True])
@pytest.mark.parametrize("grads_disabled", [False, True])
def test_each_buffer_has_a_host_backup_unless_disabled(saver, params_disabled, grads_disabled):
    model = make_model()
    buffer = make_buffer(
        model,
        pausable=True,
        disable_param_buffers_cpu_backup=params_disabled,
        disable_grad_buffers_cpu_backup=grads_disabled,
    )
    saver.pause()

    assert (saver.get_cpu_backup(buffer.param_data) is None) is params_disabled
    assert (saver.get_cpu_backup(buffer.grad_data) is None) is grads_disabled


def test_buffers_of_a_run_that_never_offloads_are_ordinary_memory(saver):
    buffer = make_buffer(make_model(), pausable=False)

    assert classify(buffer.param_data).tag is None


def test_an_observer_sees_the_parameters_by_name(saver):
    buffer = make_buffer(make_model(), pausable=True)

    region = residency_snapshot()["param_buffer"]
    assert region["first_tensors"] == ["0.weight", "1.weight", "1.bias"]
    assert region["num_tensors"] == len(buffer.names)


def test_the_config_takes_over_what_validation_decided():
    args = parse_args(["--offload-train", "--disable-weights-backuper"])

    assert DistributedDataParallelConfig.from_args(args) == DistributedDataParallelConfig(
        pausable=True,
        disable_param_buffers_cpu_backup=False,
        disable_grad_buffers_cpu_backup=True,
    )


def test_nothing_to_train_is_an_empty_buffer(saver):
    buffer = make_buffer(make_model().requires_grad_(False), pausable=True)

    assert buffer.names == []
    assert buffer.param_data.numel() == 0


def test_two_dtypes_are_refused():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).double())

    with pytest.raises(ValueError, match="one dtype"):
        make_buffer(model)
