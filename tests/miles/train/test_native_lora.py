"""A model that builds its own LoRA: validation passes, the weights cannot be read."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

NATIVE = (
    "--actor-num-gpus-per-node",
    "2",
    "--rollout-num-gpus-per-engine",
    "2",
    "--pipeline-model-parallel-size",
    "2",
    "--colocate",
    "--disable-weights-backuper",
    "--custom-model-provider-path",
    "miles.plugins.native_lora.model_provider",
    "--target-modules",
    "layers.1",
)


def stack(process):
    py_spy = str(Path(sys.executable).with_name("py-spy"))
    dump = subprocess.run(
        [py_spy, "dump", "--nonblocking", "--pid", str(process.pid)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return dump.stdout + dump.stderr


@pytest.mark.slow
def test_the_audit_names_the_weights_that_cannot_be_read(start_run):
    run = start_run(*NATIVE)

    status = run.finish()

    assert status == 1
    message = run.errors[run.errors.index("miles.train: rank 1 failed") :]
    assert "WeightsUnavailableError: 8 of 16 weights cannot be read" in message
    assert "decoder.layers.1.self_attention.linear_qkv.lora_A (region param_buffer" in message
    assert run.wait_until_all_ended() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "ending"), [("userfaultfd", signal.SIGKILL), ("mprotect", signal.SIGTERM)]
)
def test_without_the_audit_the_owner_hangs_and_the_others_wait_in_the_barrier(
    start_run, comes_to_wait_in, backend, ending
):
    run = start_run(*NATIVE, "--no-weight-residency-audit", "--memory-saver-backend", backend)
    run.wait_for_line("all ranks are up")
    waiting, owner = run.ranks()

    where = comes_to_wait_in(owner, {"handle_userfault", "__do_sys_pause"})
    owner_stack, waiting_stack = stack(owner), stack(waiting)

    assert where == {"userfaultfd": "handle_userfault", "mprotect": "__do_sys_pause"}[backend]
    assert "_TensorBackuperNoop.get" in owner_stack
    assert "barrier (torch/distributed" in waiting_stack
    assert "UpdateWeightFromTensor.update_weights" in waiting_stack

    run.process.send_signal(ending)
    assert run.finish() in (128 + ending, -ending)
    assert run.wait_until_all_ended() == []
