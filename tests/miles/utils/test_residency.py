import json
import threading

import pytest
import torch

from miles.utils.arguments import parse_args
from miles.utils.residency import (
    Residency,
    ResidencyState,
    WeightsUnavailableError,
    audit_weights,
    classify,
    name_tensors,
    residency_snapshot,
)


@pytest.fixture
def args():
    return parse_args(["--colocate", "--disable-weights-backuper"])


@pytest.fixture
def bare(saver):
    with saver.region("param_buffer", enable_cpu_backup=False):
        return [(f"layers.{i}.lora_A", torch.ones(3)) for i in range(7)]


@pytest.fixture
def backed_up(saver):
    with saver.region("default", enable_cpu_backup=True):
        return [("embedding.weight", torch.ones(3))]


def test_a_tensor_is_resident_backed_up_or_paused_without_copy(saver, bare, backed_up):
    ordinary, bare, backed_up = torch.ones(3), bare[0][1], backed_up[0][1]
    resident = ResidencyState.RESIDENT

    assert classify(ordinary) == Residency(resident, None)
    assert classify(bare[1:]) == Residency(resident, "param_buffer")
    saver.pause()
    assert classify(ordinary) == Residency(resident, None)
    assert classify(bare[1:]) == Residency(ResidencyState.PAUSED_WITHOUT_COPY, "param_buffer")
    assert classify(backed_up) == Residency(ResidencyState.BACKED_UP, "default", "cpu")


def test_a_copy_on_disk_cannot_be_read_while_paused(saver, tmp_path, backed_up):
    saver.configure(backup_target="disk", disk_dir=str(tmp_path))
    saver.pause()

    residency = classify(backed_up[0][1])

    assert residency == Residency(ResidencyState.PAUSED_WITHOUT_COPY, "default", "disk")


def test_the_audit_is_silent_where_everything_can_be_read(saver, args, bare, backed_up):
    audit_weights(bare + backed_up, args)
    saver.pause("default")
    audit_weights(bare + backed_up + [("host", torch.ones(3))], args)
    audit_weights([], args)


def test_the_audit_names_what_is_lost_where_and_by_which_flags(saver, args, bare, backed_up):
    saver.pause()

    with pytest.raises(WeightsUnavailableError) as error:
        audit_weights(backed_up + bare, args)

    message = str(error.value)
    assert "7 of 8 weights cannot be read" in message
    assert "layers.0.lora_A (region param_buffer, no backup), " in message
    assert "layers.4.lora_A" in message
    assert "layers.5.lora_A" not in message
    assert "and 2 more" in message
    assert "embedding.weight" not in message
    assert "enable_weights_backuper=False" in message
    assert "offload_train=True" in message
    assert "turned off afterwards" in message
    assert "remove --disable-weights-backuper" in message


def test_the_audit_does_not_speak_of_a_patch_where_validation_gave_the_backup_up(saver, bare):
    args = parse_args(["--colocate"])
    saver.pause()

    with pytest.raises(WeightsUnavailableError) as error:
        audit_weights(bare, args)

    assert "turned off afterwards" not in str(error.value)


def test_a_host_copy_that_is_not_read_does_not_count(saver, args, backed_up):
    saver.pause()

    audit_weights(backed_up, args)
    with pytest.raises(WeightsUnavailableError, match="its host copy is not what is read"):
        audit_weights(backed_up, args, reads_host_copies=False)


def test_the_remedy_for_a_copy_on_disk_is_to_resume(saver, args, tmp_path, backed_up):
    saver.configure(backup_target="disk", disk_dir=str(tmp_path))
    saver.pause()

    with pytest.raises(WeightsUnavailableError, match="What to do: resume the trainer"):
        audit_weights(backed_up, args)


def test_the_audit_can_be_turned_off(saver, bare):
    saver.pause()

    audit_weights(bare, parse_args(["--no-weight-residency-audit"]))


def test_a_snapshot_tells_paused_and_copy_by_region(saver, bare, backed_up):
    name_tensors(bare)
    saver.pause("param_buffer")

    snapshot = json.loads(json.dumps(residency_snapshot()))

    lost, kept = snapshot["param_buffer"], snapshot["default"]
    assert (lost["paused"], lost["has_backup"], lost["backup_target"]) == (True, False, None)
    assert (lost["num_tensors"], lost["num_allocations_paused"]) == (7, 7)
    assert lost["first_tensors"] == [f"layers.{i}.lora_A" for i in range(5)]
    assert (kept["paused"], kept["has_backup"]) == (False, True)


def test_a_snapshot_is_had_while_another_thread_is_stuck_in_a_read(saver, bare):
    saver.pause()
    entered = threading.Event()

    def read():
        entered.set()
        bare[0][1].sum()

    reader = threading.Thread(target=read, name="stuck-reader", daemon=True)
    reader.start()
    assert entered.wait(timeout=30)

    assert residency_snapshot()["param_buffer"]["paused"]
    assert classify(bare[0][1]).state is ResidencyState.PAUSED_WITHOUT_COPY
    saver.resume()
    reader.join(timeout=30)
    assert not reader.is_alive()
