from __future__ import annotations

import pytest

from watchdog.intake.log_lines.table import FAMILIES, KNOWN_LINES


def only(text: str) -> tuple[str, dict[str, str]]:
    found = list(KNOWN_LINES.events(text))
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        (
            "RuntimeError: [/gloo/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv"
            " operation to complete",
            "gloo_recv_timeout",
            {"timeout_ms": "1800000", "direction": "recv"},
        ),
        ("Application timeout caused pair closure", "gloo_app_timeout", {}),
        (
            "Connection reset by peer [10.1.2.3]:3321",
            "gloo_peer_closed",
            {"how": "reset", "peer": "10.1.2.3"},
        ),
        (
            "Ranks 1, 5 failed to pass monitoredBarrier in 5000 ms",
            "monitored_barrier_missing",
            {"ranks": "1, 5", "timeout_ms": "5000"},
        ),
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=BROADCAST,"
            " NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600003 milliseconds before",
            "nccl_watchdog_timeout",
            {"seq": "9", "op": "BROADCAST", "timeout_ms": "600000", "ran_ms": "600003"},
        ),
        (
            "[PG ID 3 PG GUID 7(tp) Rank 2]  failure detected by watchdog at work sequence id: 9"
            " PG status: last enqueued work: 12, last completed work: 8",
            "nccl_work_status",
            {"group": "tp", "last_enqueued": "12", "last_completed": "8"},
        ),
        (
            "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
            "nccl_watchdog_stuck",
            {"stuck_s": "480"},
        ),
        (
            "wait timeout after 300000ms, keys: /default_pg/0//cuda//0",
            "store_wait_timeout",
            {"timeout_ms": "300000", "keys": "/default_pg/0//cuda//0"},
        ),
        (
            "init custom process group: master_address=10.0.0.9, master_port=41, rank_offset=3,"
            " rank=4, world_size=9, group_name=slime-pp_1, backend=nccl",
            "group_join",
            {"address": "10.0.0.9", "rank_offset": "3", "member": "4", "world_size": "9",
             "group": "slime-pp_1"},
        ),
        (
            "Cache not flushed because there are pending requests. #queue-req: 3, #running-req: 2",
            "engine_control",
            {"op": "flush", "stage": "retry", "queued": "3", "running": "2"},
        ),
        (
            "Start unload Lora adapter. Lora name=policy_v2",
            "engine_control",
            {"op": "unload_lora", "stage": "begin", "name": "policy_v2"},
        ),
        (
            '10.0.0.1:1 - "POST /sleep?level=2 HTTP/1.1" 200 OK',
            "engine_control",
            {"op": "sleep", "stage": "end", "status": "200", "query": "level=2"},
        ),
        (
            '10.0.0.1:1 - "POST /update_weights_from_disk HTTP/1.1" 500 Internal Server Error',
            "engine_control",
            {"op": "update", "stage": "error", "status": "500"},
        ),
        (
            '10.0.0.1:1 - "GET /v1/models HTTP/1.1" 404 Not Found',
            "http_access",
            {"path": "/v1/models", "status": "404"},
        ),
        (
            "Subprocess scheduler_3 (pid=41) crashed with exit code -6. Triggering SIGQUIT",
            "engine_worker_died",
            {"name": "scheduler_3", "died_pid": "41", "exit_code": "-6"},
        ),
        (
            "Memory cgroup out of memory: Killed process 991 (python3) total-vm:1kB, anon-rss:2kB",
            "oom_kill",
            {"killed_pid": "991", "name": "python3"},
        ),
        (
            "Engine 002: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 20.5"
            " tokens/s, Running: 7 reqs, Waiting: 2 reqs, GPU KV cache usage: 1%",
            "engine_load",
            {"replica": "002", "throughput": "20.5", "running": "7", "queued": "2"},
        ),
        (
            "Sync weights:  40%|####      | 12/30 [00:08<00:12, 1.5it/s]",
            "progress",
            {"name": "Sync weights", "done": "12", "total": "30"},
        ),
        (
            "Waiting for path `/runs/a/step_3/READY` for 40 seconds",
            "file_wait",
            {"path": "/runs/a/step_3/READY", "waited_s": "40"},
        ),
        (
            "ft cls=X fn=sleep phase=end ok=false elapsed_s=3.5",
            "trainer_phase",
            {"name": "sleep", "stage": "error", "elapsed_s": "3.5"},
        ),
        ("RuntimeError: pidfd_getfd: Operation not permitted", "cuda_ipc_refused",
         {"error": "Operation not permitted"}),
    ],
)  # fmt: skip
def test_a_known_line_is_recognised_with_its_fields(text, kind, fields):
    found, values = only(text)

    assert found == kind
    assert fields.items() <= values.items()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Loss: 0.1, reward 3, everything fine",
        "we paused for lunch and resumed the generation of ideas",
        "the process is fast; the thread count is 8",
        "Generation KL Error: 0.001",
    ],
)
def test_an_ordinary_line_means_nothing(text):
    assert list(KNOWN_LINES.events(text)) == []


def test_every_pattern_has_a_literal_to_be_found_by():
    for entry in FAMILIES:
        assert entry.literals, entry.kind
        assert all(len(literal) >= 3 for literal in entry.literals), entry.kind


def test_every_family_says_what_its_lines_do_not_say():
    import importlib
    import pkgutil

    import watchdog.intake.log_lines as package

    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        if info.name != "table":
            assert "do not say" in (module.__doc__ or ""), info.name


def test_a_cluster_tells_what_it_has_what_is_asked_for_and_what_it_cannot_grant(read_files):
    text = """\
 12.0/64.0 GPU
 {'GPU': 8.0, 'CPU': 16.0} * 12 (STRICT_SPREAD): 2+ pending placement groups
Warning: No available node types can fulfill resource request {'GPU': 16.0}.
0/9 nodes are available: 9 Insufficient nvidia.com/gpu.
"""

    events = read_files({"status.txt": text}).log_events

    assert next(e for e in events if e.kind == "cluster_gpus").fields["total"] == "64.0"
    demand = next(e for e in events if e.kind == "cluster_demand").fields
    assert (demand["gpus"], demand["count_of_bundles"]) == ("8.0", "12")
    assert sum(e.kind == "resources_lacking" for e in events) == 2


def test_a_worker_says_that_it_keeps_the_group_it_has(read_files):
    text = "WARNING transfer group wg-3 already exists in this process, ignoring init\n"

    kinds = [e.kind for e in read_files({"engine_2.log": text}).log_events]

    assert "group_kept" in kinds
