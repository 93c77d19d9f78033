"""The watchdog in Ray's workers: turned on by a variable of the driver alone."""

import json

import pytest

pytest.importorskip("ray", exc_type=ImportError)
blackbox = pytest.importorskip("watchdog.blackbox", exc_type=ImportError)

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_each_rank_records_its_syncs_on_a_cluster_that_was_started_without(
    two_nodes, start_ray_run, tmp_path
):
    run = start_ray_run(
        *("--ray-address", two_nodes.address, "--actor-num-nodes", "2"),
        *("--actor-num-gpus-per-node", "1", "--colocate", "--num-rollout", "100000"),
        MILES_WATCHDOG="1",
        MILES_WATCHDOG_DIR=str(tmp_path / "reports"),
    )
    run.wait_for("rollout 2 ")

    boxes = sorted(tmp_path.glob("reports/*/ranks/*.blackbox"))
    readings = [blackbox.read_blackbox(box) for box in boxes]

    assert [reading.identity["rank"] for reading in readings] == [0, 1]
    assert [reading.identity["world_size"] for reading in readings] == [2, 2]
    for reading in readings:
        sections = {event.name for event in reading.events if event.kind == "section"}
        assert sections == {"weight_sync"}


def test_a_healthy_run_leaves_one_line_a_sync_and_nothing_else(two_nodes, start_ray_run, tmp_path):
    run = start_ray_run(
        *("--ray-address", two_nodes.address, "--actor-num-nodes", "2"),
        *("--actor-num-gpus-per-node", "1", "--colocate", "--num-rollout", "2"),
        MILES_WATCHDOG="1",
        MILES_WATCHDOG_DIR=str(tmp_path / "reports"),
    )

    assert run.finish() == 0, run.errors
    (left,) = (path for path in tmp_path.glob("reports/**/*") if path.is_file())
    assert left.name == "syncs.jsonl"
    lines = [json.loads(line) for line in left.read_text().splitlines()]
    assert [line["index"] for line in lines] == [1, 2, 3]
