"""Whole runs: launcher, ranks and engines as processes."""

import pytest

ONE_RANK = ("--actor-num-gpus-per-node", "1")
TWO_RANKS = ("--actor-num-gpus-per-node", "2", "--rollout-num-gpus-per-engine", "2")
TARGET = ("--colocate", "--disable-weights-backuper", "--lora-rank", "4")


@pytest.mark.parametrize("python_flags", [(), ("-O",)])
def test_the_target_combination_is_refused_at_once(start_run, python_flags):
    run = start_run(*TARGET, "--offload-train", python_flags=python_flags)

    status = run.finish(within_s=5)

    assert status == 1
    assert (
        "AssertionError: --disable-weights-backuper is not supported with "
        "LoRA + --colocate + --offload-train"
    ) in run.errors


def test_the_refusal_comes_before_torch_is_imported(start_run):
    run = start_run(*TARGET, "--offload-train", python_flags=("-X", "importtime"))

    run.finish()

    assert "AssertionError" in run.errors
    assert "miles.utils.arguments" in run.errors
    assert "torch" not in run.errors


@pytest.mark.parametrize(
    "flags",
    [
        ("--train-backend", "fsdp"),
        ("--advantage-estimator", "ppo"),
        ("--ref-load", "somewhere"),
        ("--keep-old-actor", "--disable-weights-backuper"),
    ],
)
def test_a_flag_that_is_not_built_is_named_and_refused(start_run, flags):
    run = start_run(*flags)

    status = run.finish()

    assert status == 2
    assert flags[0] in run.errors


NEIGHBOURS = {
    "lora_with_backuper": (*TWO_RANKS, "--colocate", "--lora-rank", "4"),
    "no_lora_without_backuper": (*TWO_RANKS, "--colocate", "--disable-weights-backuper"),
    "lora_without_offload": (*ONE_RANK, *TARGET, "--no-offload-train"),
    "disk_target_with_backuper": (
        *(*ONE_RANK, "--colocate", "--lora-rank", "4"),
        *("--offload-train-target", "disk"),
    ),
    "merged_adapters": (*ONE_RANK, "--colocate", "--lora-rank", "4", "--lora-train-only"),
    "two_stages": (
        *(*TWO_RANKS, "--colocate", "--lora-rank", "4"),
        *("--pipeline-model-parallel-size", "2"),
    ),
    "broadcast_to_two_engines": (*ONE_RANK, "--rollout-num-gpus", "2"),
    "p2p": (*TWO_RANKS, "--rollout-num-gpus", "2", "--update-weight-transfer-mode", "p2p"),
    "disk_delta": (*ONE_RANK, "--update-weight-transfer-mode", "disk-delta"),
}


@pytest.mark.slow
@pytest.mark.parametrize("flags", NEIGHBOURS.values(), ids=NEIGHBOURS.keys())
def test_a_healthy_run_learns_and_leaves_its_weights_in_the_engines(start_run, flags):
    run = start_run(
        *TWO_RANKS, "--num-rollout", "6", "--update-weight-buffer-size", "50000", *flags
    )

    status = run.finish()

    assert status == 0, run.errors
    assert "hold the trained weights" in run.output
    steps = run.metrics()
    assert [step["weight_version"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1]["reward"] > steps[0]["reward"] + 0.15
    assert steps[-1]["loss"] < steps[0]["loss"] - 0.15
    assert max(step["logprob_difference"] for step in steps) < 1e-5
    assert run.wait_until_all_ended() == []
    assert [path for path in run.scratch.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(start_run):
    flags = ("--actor-num-gpus-per-node", "1", "--colocate", "--num-rollout", "3")
    first, second = start_run(*flags), start_run(*flags)

    first.finish()
    second.finish()

    losses = [[step["loss"] for step in run.metrics()] for run in (first, second)]
    assert len(losses[0]) == 3
    assert losses[0] == losses[1]
