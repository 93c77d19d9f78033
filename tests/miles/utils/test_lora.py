import pytest

from miles.utils.arguments import parse_args
from miles.utils.lora import is_lora_enabled, lora_rollout_enabled


@pytest.mark.parametrize(
    ("flags", "enabled", "in_rollout"),
    [
        ("", False, False),
        ("--lora-rank 0", False, False),
        ("--lora-rank 8", True, True),
        ("--lora-adapter-path adapters", True, True),
        ("--lora-rank 8 --lora-train-only", True, False),
        ("--lora-train-only", False, False),
        ("--custom-model-provider-path my.native_lora", False, False),
    ],
)
def test_lora_is_known_by_its_flags_alone(flags, enabled, in_rollout):
    args = parse_args(flags.split())

    assert is_lora_enabled(args) is enabled
    assert lora_rollout_enabled(args) is in_rollout
