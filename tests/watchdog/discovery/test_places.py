"""Ranks and engine numbers, and how they were found out."""

from __future__ import annotations

TITLE = "ray::MegatronTrainRayActor.update_weights"


def by_of(placed, pid):
    return " ".join(next(m for m in placed.job.members if m.seen.pid == pid).by)


def test_ranks_come_from_the_environment(node):
    node.ranks([12, 11])

    assert node.keys() == {12: "rank 0", 11: "rank 1"}
    assert node.placed().world_size == 2


def test_actors_without_a_rank_are_numbered_from_the_store_owner_by_order_of_start(node):
    for pid in (11, 12, 13):
        node.add(pid, TITLE, RAY_JOB_ID="01")
    node.connect(11, 12, port=5000)
    node.connect(13, 12, port=5000)

    placed = node.placed()

    assert {m.seen.pid: m.rank for m in placed.job.members} == {12: 0, 11: 1, 13: 2}
    assert "owns the store" in by_of(placed, 12)
    assert "guessed" in by_of(placed, 13)


def test_no_rank_is_guessed_where_part_of_the_job_is_elsewhere(node):
    node.add(6, "python train.py --actor-num-nodes 2 --actor-num-gpus-per-node 2", RAY_JOB_ID="01")
    for pid in (11, 12):
        node.add(pid, TITLE, RAY_JOB_ID="01")

    placed = node.placed()

    assert placed.world_size == 4
    assert [m.key for m in placed.job.of("trainer")] == ["node-0:11", "node-0:12"]
    assert "other hosts" in by_of(placed, 11)


def test_the_folder_of_offloaded_memory_tells_a_rank(node):
    for pid, rank in ((11, 5), (12, 4)):
        node.add(pid, TITLE, RAY_JOB_ID="01", TMS_DISK_BACKUP_DIR=f"/scratch/tms/rank_{rank}")

    assert {m.seen.pid: m.rank for m in node.placed().job.of("trainer")} == {12: 4, 11: 5}


def test_the_name_of_an_actor_tells_a_rank(node):
    node.add(11, "ray::lm_policy-7:MegatronPolicyWorker.broadcast", RAY_JOB_ID="01")

    assert node.keys() == {11: "rank 7"}


def test_a_rank_of_this_node_without_a_process_is_absent(node):
    node.ranks([11, 12, 13], LOCAL_WORLD_SIZE="3", GROUP_RANK="0")
    del node.everything[12]

    placed = node.placed()

    assert placed.absent == (1,)
    assert "LOCAL_WORLD_SIZE" in placed.how_absent


def test_a_rank_of_another_node_is_not_called_absent(node):
    node.ranks([11, 12], LOCAL_WORLD_SIZE="2", GROUP_RANK="0", MASTER_ADDR="10.0.0.1")
    for pid in (11, 12):
        node.everything[pid].environ.update(WORLD_SIZE="4")

    placed = node.placed()

    assert placed.world_size == 4
    assert placed.absent == ()


def test_engines_are_numbered_by_the_addresses_that_the_ranks_were_given(node):
    urls = "http://127.0.0.1:7001,http://127.0.0.1:7002"
    node.ranks([11], MILES_ROLLOUT_ENGINES=urls)
    node.add(30, "python -m sglang.launch_server")
    node.add(31, "python -m sglang.launch_server")
    node.connect(11, 30, port=7002)
    node.connect(11, 31, port=7001)

    assert node.keys() == {11: "rank 0", 31: "engine 0", 30: "engine 1"}


def test_engines_that_nothing_numbers_are_numbered_by_their_start_and_it_is_said(node):
    node.ranks([11])
    for pid in (31, 30):
        node.add(pid, "python -m sglang.launch_server", parent=11)

    placed = node.placed()

    assert node.keys() == {11: "rank 0", 30: "engine 0", 31: "engine 1"}
    assert "guessed" in by_of(placed, 31)


def test_the_server_that_an_engine_started_tells_its_number(node):
    node.add(11, TITLE, RAY_JOB_ID="01", RANK="0", WORLD_SIZE="1")
    for pid, number in ((13, 1), (15, 0)):
        node.add(pid, "ray::SGLangEngine", RAY_JOB_ID="01")
        node.add(pid + 1, f"python -m miles.rollout.engine_server --engine-index {number}", pid)

    assert node.keys() == {
        11: "rank 0", 15: "engine 0", 16: "engine 0 server", 13: "engine 1", 14: "engine 1 server",
    }  # fmt: skip


def test_the_drivers_flags_tell_the_number_of_ranks(node):
    node.add(6, "python train.py --actor-num-gpus-per-node 2 --lr 1", RAY_JOB_ID="01")
    for pid in (11, 12):
        node.add(pid, TITLE, RAY_JOB_ID="01")

    placed = node.placed()

    assert placed.world_size == 2
    assert [m.key for m in placed.job.of("trainer")] == ["rank 0", "rank 1"]


def test_workers_that_ray_started_belong_to_the_engine_they_are_connected_to(node):
    node.add(11, TITLE, RAY_JOB_ID="01")
    node.add(20, "ray::VLLMServerActor.generate", RAY_JOB_ID="01")
    node.add(21, "ray::VLLMServerActor.generate", RAY_JOB_ID="01")
    node.add(22, "ray::RayWorkerWrapper.execute", RAY_JOB_ID="01")
    node.connect(22, 21, port=6000)

    assert node.keys()[22] == "engine 1 worker 0"


def test_the_processes_of_an_engine_are_its_server_and_its_workers(node):
    node.add(11, TITLE, RAY_JOB_ID="01", RANK="0", WORLD_SIZE="1")
    node.add(13, "ray::SGLangEngine.update", RAY_JOB_ID="01")
    node.add(14, "python -c spawn_main", 13, RAY_JOB_ID="01")
    node.add(15, "sglang::scheduler_TP0", 14, RAY_JOB_ID="01")
    node.add(16, "sglang::scheduler_TP1", 14, RAY_JOB_ID="01")
    node.add(17, "sglang::detokenizer", 14, RAY_JOB_ID="01")

    assert node.keys() == {
        11: "rank 0", 13: "engine 0", 14: "engine 0 server", 15: "engine 0 worker 0",
        16: "engine 0 worker 1", 17: "node-0:17",
    }  # fmt: skip
