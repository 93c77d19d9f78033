import subprocess
import sys

import pytest

from miles.utils.arguments import miles_validate_args, parse_args

LORA = "--lora-rank 8"
REFERENCE = f"{LORA} --colocate --offload-train --disable-weights-backuper"
REFERENCE_MESSAGE = (
    "--disable-weights-backuper is not supported with LoRA + --colocate + --offload-train"
)
DISK = "--offload-train --offload-train-target disk"
STREAMED = f"{DISK} --stream-optimizer-state-to-disk --use-distributed-optimizer"
NO_BACKUPER = "--disable-weights-backuper"
NO_OFFLOAD = "--no-offload-train"

# Each rule: flags that it refuses, words of its message, and flags that differ in one
# condition each and pass.
RULES = {
    "lora_needs_a_copy": (
        REFERENCE,
        REFERENCE_MESSAGE,
        [
            f"{LORA} --colocate --offload-train",
            f"--colocate --offload-train {NO_BACKUPER}",
            f"{LORA} --colocate {NO_OFFLOAD} {NO_BACKUPER}",
            f"{LORA} --offload-train {NO_BACKUPER}",
        ],
    ),
    "lora_by_adapter_path_needs_a_copy": (
        f"--lora-adapter-path adapters --colocate {NO_BACKUPER}",
        REFERENCE_MESSAGE,
        [
            "--lora-adapter-path adapters --colocate",
            f"--colocate {NO_BACKUPER}",
            f"--lora-adapter-path adapters --colocate {NO_OFFLOAD} {NO_BACKUPER}",
            f"--lora-adapter-path adapters {NO_BACKUPER}",
            # A documented limit: adapters that the model brings itself are not seen.
            f"--custom-model-provider-path my.provider --colocate {NO_BACKUPER}",
        ],
    ),
    "disk_needs_offload": (
        "--offload-train-target disk",
        "--offload-train-target disk requires --offload-train",
        [DISK, "--offload-train-target disk --colocate", "--offload-train-target cpu"],
    ),
    "disk_needs_megatron": (
        f"{DISK} --train-backend fsdp",
        "--offload-train-target disk requires --train-backend megatron",
        [DISK, "--offload-train --train-backend fsdp"],
    ),
    "disk_needs_the_backuper": (
        f"{DISK} {NO_BACKUPER}",
        "--offload-train-target disk requires the weights backuper: "
        "remove --disable-weights-backuper",
        [DISK, f"--offload-train {NO_BACKUPER}"],
    ),
    "disk_needs_a_chunk": (
        f"{DISK} --offload-train-disk-chunk-mb 0",
        "--offload-train-disk-chunk-mb must be above 0, not 0, with --offload-train-target disk",
        [f"{DISK} --offload-train-disk-chunk-mb 1", "--offload-train-disk-chunk-mb 0"],
    ),
    "streaming_needs_disk": (
        "--offload-train --stream-optimizer-state-to-disk --use-distributed-optimizer",
        "--stream-optimizer-state-to-disk requires --offload-train-target disk",
        [STREAMED, "--offload-train --use-distributed-optimizer"],
    ),
    "streaming_needs_a_distributed_optimizer": (
        f"{DISK} --stream-optimizer-state-to-disk",
        "--stream-optimizer-state-to-disk requires the distributed Adam optimizer: "
        "--optimizer adam --use-distributed-optimizer",
        [STREAMED, DISK],
    ),
    "streaming_needs_adam": (
        f"{STREAMED} --optimizer sgd",
        "--stream-optimizer-state-to-disk requires the distributed Adam optimizer: "
        "--optimizer adam --use-distributed-optimizer",
        [STREAMED, f"{DISK} --optimizer sgd --use-distributed-optimizer"],
    ),
    "streaming_excludes_lora": (
        f"{STREAMED} {LORA}",
        "--stream-optimizer-state-to-disk is not supported with LoRA",
        [STREAMED, f"{DISK} --use-distributed-optimizer {LORA}"],
    ),
    "p2p_excludes_colocate": (
        "--update-weight-transfer-mode p2p --colocate",
        "--update-weight-transfer-mode p2p is not supported with --colocate",
        ["--update-weight-transfer-mode p2p", "--colocate"],
    ),
    "p2p_excludes_lora": (
        f"--update-weight-transfer-mode p2p {LORA}",
        "--update-weight-transfer-mode p2p is not supported with LoRA",
        ["--update-weight-transfer-mode p2p", LORA],
    ),
    "disk_delta_excludes_colocate": (
        "--update-weight-transfer-mode disk-delta --colocate",
        "--update-weight-transfer-mode disk-delta is not supported with --colocate",
        ["--update-weight-transfer-mode disk-delta", "--update-weight-transfer-mode broadcast"],
    ),
    "disk_delta_excludes_lora": (
        f"--update-weight-transfer-mode disk-delta {LORA}",
        "--update-weight-transfer-mode disk-delta is not supported with LoRA",
        [
            "--update-weight-transfer-mode disk-delta",
            f"--update-weight-transfer-mode broadcast {LORA}",
        ],
    ),
    "debug_modes_exclude_each_other": (
        "--debug-train-only --debug-rollout-only",
        "--debug-train-only and --debug-rollout-only exclude each other",
        ["--debug-train-only", "--debug-rollout-only"],
    ),
    "counts_are_positive": (
        "--actor-num-nodes 0",
        "--actor-num-nodes must be above 0, not 0",
        ["--actor-num-nodes 1"],
    ),
    "a_rank_is_not_negative": (
        "--lora-rank -1",
        "--lora-rank must not be negative, it is -1",
        ["--lora-rank 0"],
    ),
}
NEIGHBOURS = [(rule, flags) for rule, (_, _, passing) in RULES.items() for flags in passing]


@pytest.mark.parametrize(("flags", "message", "_"), RULES.values(), ids=RULES)
def test_a_combination_that_cannot_work_is_refused_by_name(flags, message, _):
    with pytest.raises(AssertionError) as refused:
        parse_args(flags.split())

    assert str(refused.value) == message


@pytest.mark.parametrize(("rule", "flags"), NEIGHBOURS)
def test_a_neighbour_that_differs_in_one_condition_passes(rule, flags):
    parse_args(flags.split())


@pytest.mark.parametrize("flags", [REFERENCE, f"{DISK} {NO_BACKUPER}"])
def test_rules_hold_without_assert_statements(flags):
    program = "import sys; from miles.utils.arguments import parse_args; parse_args(sys.argv[1:])"
    run = subprocess.run(
        [sys.executable, "-O", "-c", program, *flags.split()],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("AssertionError: --")


def test_flags_are_read_without_loading_torch():
    program = "import sys, miles.utils.arguments; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("flags", "offload_train", "offload_rollout"),
    [
        ("", False, False),
        ("--colocate", True, True),
        ("--colocate --no-offload-train", False, True),
        ("--colocate --no-offload-rollout", True, False),
        ("--advantage-estimator ppo", True, False),
        ("--advantage-estimator ppo --no-offload-train", False, False),
        ("--advantage-estimator grpo", False, False),
        ("--offload-train", True, False),
        ("--offload-rollout", False, True),
        ("--offload", True, True),
        ("--colocate --debug-rollout-only", False, False),
    ],
)
def test_offload_follows_who_shares_gpus_unless_given(flags, offload_train, offload_rollout):
    args = parse_args(flags.split())

    assert (args.offload_train, args.offload_rollout) == (offload_train, offload_rollout)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--actor-num-nodes 2 --actor-num-gpus-per-node 3 --colocate", 6),
        ("--actor-num-gpus-per-node 3 --colocate --rollout-num-gpus 1", 3),
        ("--actor-num-gpus-per-node 3 --rollout-num-gpus 1", 1),
        ("--rollout-num-gpus-per-engine 2", 2),
        ("--debug-train-only", 0),
    ],
)
def test_rollout_gpus_follow_the_actor_only_when_colocated(flags, expected):
    assert parse_args(flags.split()).rollout_num_gpus == expected


@pytest.mark.parametrize(
    ("flags", "param_buffers", "grad_buffers"),
    [
        ("", False, False),
        (NO_BACKUPER, False, False),
        ("--offload-train", True, True),
        (f"--offload-train {NO_BACKUPER}", False, True),
    ],
)
def test_offloaded_buffers_have_a_host_copy_where_the_backuper_keeps_none(
    flags, param_buffers, grad_buffers
):
    args = parse_args(flags.split())

    assert args.disable_param_buffers_cpu_backup is param_buffers
    assert args.disable_grad_buffers_cpu_backup is grad_buffers


def test_validating_twice_changes_nothing():
    args = parse_args(f"{LORA} --colocate --target-modules q_proj,linear_fc1".split())
    before = dict(vars(args))

    miles_validate_args(args)

    assert vars(args) == before
    assert args.target_modules == ["q_proj", "linear_fc1"]


def test_help_explains_every_flag(capsys):
    with pytest.raises(SystemExit) as ended:
        parse_args(["--help"])

    assert ended.value.code == 0
    text = capsys.readouterr().out
    for part in ("cluster:", "offload:", "LoRA:", "weight sync:", "--disable-weights-backuper"):
        assert part in text
