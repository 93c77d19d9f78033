import pytest
import torch

from miles.backends.megatron_utils import lora_utils
from miles.backends.megatron_utils.lora_utils import (
    LoRALinear,
    apply_lora,
    convert_target_modules_to_megatron,
    is_lora_model,
    patch_param_grad_buffer_for_colocate_mode_lora,
)
from miles.backends.megatron_utils.param_and_grad_buffer import (
    DistributedDataParallelConfig,
    ParamAndGradBuffer,
)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(8, 4)
        self.linear_qkv = torch.nn.Linear(4, 4)
        self.linear_fc1 = torch.nn.Linear(4, 4)
        self.output_layer = torch.nn.Linear(4, 8)

    def forward(self, tokens):
        return self.output_layer(self.linear_fc1(self.linear_qkv(self.embedding(tokens))))


@pytest.fixture
def unpatched(monkeypatch):
    monkeypatch.setattr(ParamAndGradBuffer, "__init__", ParamAndGradBuffer.__init__)
    monkeypatch.setattr(lora_utils, "_is_patched", False)


def trained(model):
    return [name for name, param in model.named_parameters() if param.requires_grad]


def test_lora_starts_as_the_base_alone():
    model, tokens = Model(), torch.arange(8)
    before = model(tokens)

    apply_lora(model, rank=2, alpha=4, target_modules="all-linear")

    assert torch.equal(model(tokens), before)


@pytest.mark.parametrize(
    ("target_modules", "layers"),
    [
        ("all-linear", ["linear_qkv", "linear_fc1"]),
        ("linear_qkv", ["linear_qkv"]),
        (["q_proj", "k_proj"], ["linear_qkv"]),
        ("up_proj, q_proj", ["linear_qkv", "linear_fc1"]),
        ("output_layer", ["output_layer"]),
    ],
)
def test_only_adapters_of_the_target_layers_train(target_modules, layers):
    model = apply_lora(Model(), 2, 4, target_modules)

    assert trained(model) == [
        f"{layer}.{part}" for layer in layers for part in ("lora_A", "lora_B")
    ]


def test_a_target_that_no_layer_has_is_an_error():
    with pytest.raises(ValueError, match="no linear layer of the model is named nonsense"):
        apply_lora(Model(), 2, 4, "nonsense")


def test_a_rank_of_zero_is_an_error():
    with pytest.raises(ValueError, match="rank must be above 0, not 0"):
        LoRALinear(torch.nn.Linear(2, 2), rank=0, alpha=1)


def test_the_merged_weight_computes_the_same():
    layer = LoRALinear(torch.nn.Linear(4, 3), rank=2, alpha=4)
    torch.nn.init.normal_(layer.lora_B)
    x = torch.randn(5, 4)

    merged = torch.nn.functional.linear(x, layer.merged_weight(), layer.base_layer.bias)

    torch.testing.assert_close(layer(x), merged)


def test_adapters_are_seen_in_the_model_whatever_the_flags_say():
    assert not is_lora_model(Model())
    assert is_lora_model(apply_lora(Model(), 2, 4, "all"))


def test_unknown_module_names_are_kept_and_doubles_dropped():
    names = convert_target_modules_to_megatron(["q_proj", "mine", "v_proj"])

    assert names == ["linear_qkv", "mine"]


@pytest.mark.parametrize("num_times", [1, 2])
def test_the_patch_turns_host_backups_off_whatever_was_decided(saver, unpatched, num_times):
    for _ in range(num_times):
        patch_param_grad_buffer_for_colocate_mode_lora()
    patched = ParamAndGradBuffer.__init__
    config = DistributedDataParallelConfig(pausable=True)
    buffer = ParamAndGradBuffer(config, list(Model().named_parameters()))
    saver.pause()

    assert config.disable_param_buffers_cpu_backup
    assert config.disable_grad_buffers_cpu_backup
    assert saver.get_cpu_backup(buffer.param_data) is None
    assert not hasattr(patched.__wrapped__, "__wrapped__")
