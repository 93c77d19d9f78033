"""The watchdog in Ray's workers: turned on by the driver, on a cluster started without it."""

import json

import pytest

from watchdog.blackbox.reading import read_blackbox

pytest.importorskip("ray", exc_type=ImportError)

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.xdist_group("ray cluster")]


def test_each_rank_records_its_syncs_and_a_healthy_run_leaves_one_line_for_each(
    two_nodes, start_ray_run, tmp_path
):
    run = start_ray_run(
        *("--ray-address", two_nodes.address, "--actor-num-nodes", "2"),
        *("--actor-num-gpus-per-node", "1", "--colocate", "--num-rollout", "60"),
        MILES_WATCHDOG="1",
        MILES_WATCHDOG_DIR=str(tmp_path / "reports"),
    )
    run.wait_for("rollout 2 ")
    boxes = sorted(tmp_path.glob("reports/*/ranks/*.blackbox"))
    readings = [read_blackbox(box) for box in boxes]
    status = run.finish()

    assert [reading.identity["rank"] for reading in readings] == [0, 1]
    assert [reading.identity["world_size"] for reading in readings] == [2, 2]
    for reading in readings:
        sections = {event.name for event in reading.events if event.kind == "section"}
        assert sections == {"weight_sync"}
    assert status == 0, run.errors
    (left,) = (path for path in tmp_path.glob("reports/**/*") if path.is_file())
    assert left.name == "syncs.jsonl"
    lines = [json.loads(line) for line in left.read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(1, 62))
