"""Who ended, and who only looks as if."""

from __future__ import annotations

SUMMARY = """\
=======================================================
job.py FAILED
-------------------------------------------------------
Failures:
[1]:
  time      : 2026-12-01_02:27:47
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 31585)  (SIGTERM)
-------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_02:27:47
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 31586)
  error_file: <N/A>
=======================================================
"""
ACTORS = """\
  ACTOR_ID  CLASS_NAME    STATE  NAME              PID
 0 01aa SGLangEngine  ALIVE  rollout_engine_0  5702
 1 01ac SGLangEngine  DEAD   rollout_engine_1  5712
"""
PODS = """\
NAME            READY  STATUS    RESTARTS  IP            NODE
ddp-worker-0    1/1    Running   0         10.244.5.3    n5
ddp-worker-1    0/1    Evicted   0         10.244.7.12   n7
"""
LISTS = """\
### 02:40
  PID  PPID STAT ELAPSED CMD
 2188     1 Sl    03:10:40 VLLM::EngineCore
 2240  2188 Sl    03:10:10 VLLM::Worker_TP0
 2241  2188 Sl    03:10:11 VLLM::Worker_TP1

### 03:05
  PID  PPID STAT ELAPSED CMD
"""


def dead(evidence):
    return {
        p.rank if p.role == "trainer" else p.pid for p in evidence.processes if p.status == "dead"
    }


def test_the_worker_that_a_signal_ended_first_is_dead_and_not_those_that_were_sent_home(read_files):
    evidence = read_files({"torchrun.log": SUMMARY.format(code="-9")})

    assert dead(evidence) == {1}
    process = next(p for p in evidence.processes if p.rank == 1)
    assert (process.pid, process.status_detail) == (31586, "killed by signal 9 (SIGKILL)")


def test_a_worker_that_left_with_a_status_may_be_a_victim(read_files):
    log = "2026-04-02 06:03:01 start\n" + SUMMARY.format(code="1")

    assert dead(read_files({"torchrun.log": log})) == set()


def test_an_actor_is_dead_where_the_table_says_so(read_files):
    evidence = read_files({"actors.txt": ACTORS})

    assert {p.engine for p in evidence.processes if p.status == "dead"} == {1}


def test_an_actor_that_was_started_again_is_not_dead(read_files):
    again = ACTORS + " 2 01ad SGLangEngine  ALIVE  rollout_engine_1  5990\n"

    assert dead(read_files({"actors.txt": again})) == set()


def test_an_engine_that_the_monitor_killed_is_dead_until_it_is_restarted(read_files):
    killed = "2026-04-02 06:03:01 health_monitor.py:120 - Killing engine 2 after 2 failed checks\n"
    restarted = "2026-04-02 06:05:01 manager.py:12 - engine 2 restarted\n"

    found = read_files({"driver.log": killed})
    again = read_files({"driver.log": killed + restarted})

    assert {p.engine for p in found.processes if p.status == "dead"} == {2}
    assert dead(again) == set()


def test_the_rank_of_an_evicted_pod_is_dead(read_files):
    evidence = read_files({"pods.txt": PODS, "rank0.log": "[rank0]: step 12 loss 0.9\n"})

    assert dead(evidence) == {1}


def test_a_pod_of_several_ranks_is_no_rank(read_files):
    evidence = read_files({"pods.txt": PODS, "rank9.log": "[rank9]: step 12 loss 0.9\n"})

    assert 1 not in dead(evidence)


def test_workers_follow_the_master(read_files):
    line = (
        "[pod/job-{}/trainer] 2026-06-14T21:08:10.4Z node:{}:77 [0] NCCL INFO NCCL version 2.27.5\n"
    )
    log = line.format("master-0", 77) + line.format("worker-0", 78)

    ranks = {p.pid: p.rank for p in read_files({"kubectl.log": log}).processes}

    assert ranks == {77: 0, 78: 1}


def test_a_worker_that_a_later_list_lacks_is_dead(read_files):
    rows = (
        " 2188     1 Sl    03:35:40 VLLM::EngineCore\n 2240  2188 Sl    03:35:10 VLLM::Worker_TP0\n"
    )

    assert dead(read_files({"ps.txt": LISTS + rows})) == {2241}


def test_a_list_that_was_asked_for_less_proves_no_death(read_files):
    rows = " 2188     1 Sl    03:35:40 VLLM::EngineCore\n"

    assert dead(read_files({"ps.txt": LISTS + rows})) == set()


def test_a_map_gives_pids_their_ranks(read_files):
    dump = 'Process 2002: ray::WorkerDict\n\nThread 2002 (idle): "MainThread"\n    f (a.py:1)\n'

    evidence = read_files({"map.txt": "rank pid: 0 2000, 1 2001, 2 2002\n", "x.txt": dump})

    assert {p.pid: p.rank for p in evidence.processes}[2002] == 2


def test_files_of_one_stem_are_of_one_process(read_files):
    dump = 'Process 645: python job.py\n\nThread 645 (idle): "MainThread"\n    f (a.py:1)\n'

    evidence = read_files({"w1.env": "RANK=1\nWORLD_SIZE=4\nMASTER_PORT=29677\n", "w1.pyspy": dump})

    assert [(p.pid, p.rank) for p in evidence.processes] == [(645, 1)]


def test_a_stem_of_several_processes_names_none(read_files):
    one = 'Process {0}: python job.py\n\nThread {0} (idle): "MainThread"\n    f (a.py:1)\n'
    dumps = one.format(645) + "\n" + one.format(646)

    evidence = read_files({"w.env": "RANK=1\nWORLD_SIZE=4\nMASTER_PORT=29677\n", "w.pyspy": dumps})

    assert {p.rank for p in evidence.processes if p.stacks} == {None}


def test_a_task_that_slurm_found_out_of_memory_is_a_dead_rank(read_files):
    log = "".join(f"{n:2d}: step 4 done on rank {n}\n" for n in (8, 9, 10, 11))
    error = "srun: error: n2: task 9: Out Of Memory\nsrun: error: n2: tasks 8,10-11: Killed\n"

    dead = [p for p in read_files({"a.out": log, "a.err": error}).processes if p.status == "dead"]

    assert [(p.rank, p.status_detail) for p in dead] == [(9, "killed: out of memory")]


def test_tasks_that_start_ranks_themselves_are_no_ranks(read_files):
    log = "".join(f"1: [rank{rank}]: Timer x start\n" for rank in (8, 9, 10, 11))

    evidence = read_files({"a.out": log, "a.err": "srun: error: n2: task 1: Out Of Memory\n"})

    assert all(process.status != "dead" for process in evidence.processes)


def test_who_ray_ended_for_lack_of_memory_is_dead_and_who_exited_otherwise_is_not(read_files):
    text = """\
(PolicyActor pid=901) initialised, rank 0 of 4
(PolicyActor pid=902) initialised, rank 1 of 4
[2026-01-02 10:00:00,1 I 5 5] (raylet) Worker process 902 exited, exit type NODE_OUT_OF_MEMORY
[2026-01-02 10:00:09,1 I 5 5] (raylet) Worker process 901 exited, exit type SYSTEM_ERROR
"""

    dead = [p.pid for p in read_files({"raylet.out": text}).processes if p.status == "dead"]

    assert dead == [902]


def test_an_engine_core_that_prints_its_own_segmentation_fault_is_dead(read_files):
    text = """\
(EngineCore pid=77) INFO 01-02 10:00:00 loading
(APIServer pid=70) INFO 01-02 10:00:01 serving
(EngineCore pid=77) !!!!!!! Segfault encountered !!!!!!!
"""

    dead = [p for p in read_files({"vllm_engine_0.log": text}).processes if p.status == "dead"]

    assert [(p.pid, p.status_detail) for p in dead] == [(77, "segmentation fault")]
