"""A native-LoRA run that hangs on two Ray nodes: one report for the job, and an end in order."""

import json

import pytest

pytest.importorskip("ray", exc_type=ImportError)

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.xdist_group("ray cluster")]

NUM_RANKS = 2
# The rank with the adapters, of which the flags tell nothing.
HANGS = 1
MEMBERS = ("ray::MegatronTrainRayActor", "ray::SGLangEngine", "ray::RolloutManager")
SERVER = "miles.rollout.engine_server"


def native_lora_flags():
    targets = ",".join(f"layers.{HANGS}.mlp.linear_fc{number}" for number in (1, 2))
    return (
        *("--custom-model-provider-path", "miles.plugins.native_lora.model_provider"),
        *("--colocate", "--offload-train", "--disable-weights-backuper"),
        *("--pipeline-model-parallel-size", str(NUM_RANKS), "--num-layers", str(NUM_RANKS)),
        *("--target-modules", targets, "--no-weight-residency-audit"),
    )


@pytest.fixture
def hung_run(two_nodes, start_ray_run, tmp_path):
    """The run, started on two nodes, ended by the watchdog; and its exit status."""
    run = start_ray_run(
        *("--ray-address", two_nodes.address, "--actor-num-nodes", str(NUM_RANKS)),
        *("--actor-num-gpus-per-node", "1", *native_lora_flags()),
        MILES_WATCHDOG="1",
        MILES_WATCHDOG_DIR=str(tmp_path / "reports"),
        MILES_WATCHDOG_STALL_AFTER="5",
        MILES_WATCHDOG_ABORT_AFTER="20",
    )
    status = run.finish()
    return run, status


def test_a_hang_on_two_nodes_is_reported_once_and_all_ranks_end(hung_run, two_nodes, tmp_path):
    run, status = hung_run

    (path,) = tmp_path.glob("reports/*/incidents/*/report.json")
    report = json.loads(path.read_text())
    assert report["state"] == "hung", report["reason"]
    assert [one["rank"] for one in report["culprits"]] == [HANGS]
    assert [(c["class"], c["confidence"]) for c in report["causes"][:1]] == [
        ("missing_backup", "confirmed")
    ]
    named = {rank for group in report["groups"] for rank in group.get("ranks", ())}
    assert named == set(range(NUM_RANKS))
    assert report["unaccounted"] == []
    assert status == 1
    assert "MILES_WATCHDOG_ABORT_AFTER" in run.errors
    assert "status 86" in run.errors
    assert "miles.train: rank" in run.errors
    assert run.errors.splitlines()[-1].startswith(
        "[miles-watchdog] this run stalled in weight_sync"
    )
    for title in (*MEMBERS, SERVER, "miles-watchdog-sentinel"):
        assert two_nodes.ends_of(title) == []
