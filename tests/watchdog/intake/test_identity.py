from __future__ import annotations

import pytest

from watchdog.intake.parts import who_by_file_name


def dump(pid: int, command: str, function: str = "wait") -> str:
    head = f'Process {pid}: {command}\n\nThread {pid} (idle): "MainThread"\n'
    return f"{head}    {function} (a.py:1)\n\n"


def by_pid(evidence):
    return {process.pid: process for process in evidence.processes}


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("rank13.txt", {"rank": 13, "role": "trainer"}),
        ("policy2_native.txt", {"rank": 2}),
        ("pyspy_trainer_rank0.txt", {"rank": 0}),
        ("trace_rank_7", {"rank": 7}),
        ("engine2_actor_34902.txt", {"engine": 2, "pid": 34902}),
        ("EngineCore_DP1_5121.txt", {"engine": None, "replica": 1, "pid": 5121}),
        ("vllm_server_0.log", {"engine": 0, "role": "engine"}),
        ("engine_of_rank6.log", {"rank": 6, "engine": None}),
        ("tp5_native.txt", {"worker": 5}),
        ("r3.txt", {"rank": 3}),
        ("rank-3", {"rank": 3, "role": "trainer"}),
        ("pyspy_r12.txt", {"rank": 12}),
        ("deepseek-r1.log", {"rank": None}),
        ("r1-32b.log", {"rank": None}),
        ("driver.log", {"role": "driver", "rank": None}),
        ("dump_2026-04-12_2027_rank5.txt", {"rank": 5, "pid": None}),
        ("rank8.t1_1544.txt", {"rank": 8, "pid": None}),
        ("notes.txt", {"rank": None, "role": None}),
    ],
)
def test_file_names_give_hints(name, hints):
    who = who_by_file_name(f"folder/{name}")

    for attribute, value in hints.items():
        assert getattr(who, attribute) == value, attribute


def test_a_pid_in_a_ray_prefix_gives_a_dump_its_rank_and_host(read_files):
    log = (
        "(FSDPActor pid=41, ip=10.0.0.7) [2026-05-05 10:00:00.1 actor_cell0_rank6] Timer x start\n"
    )

    process = by_pid(read_files({"a.log": log, "d.txt": dump(41, "ray::FSDPActor.x")}))[41]

    assert (process.key, process.rank, process.host) == ("rank 6", 6, "10.0.0.7")
    assert "log prefix" in process.identified_by


def test_the_same_pid_on_two_hosts_is_two_processes(read_files):
    log = (
        "(FSDPActor pid=41, ip=10.0.0.1) [2026-05-05 10:00:00.1 actor_cell0_rank0] Timer x start\n"
        "(FSDPActor pid=41, ip=10.0.0.2) [2026-05-05 10:00:00.1 actor_cell0_rank1] Timer x start\n"
    )

    evidence = read_files({"a.log": log})

    assert [(p.rank, p.host) for p in evidence.processes] == [(0, "10.0.0.1"), (1, "10.0.0.2")]


def test_a_file_of_several_trainers_gives_its_rank_to_none(read_files):
    text = dump(41, "ray::FSDPActor.x") + dump(42, "ray::FSDPActor.x")

    assert {p.rank for p in read_files({"rank3.txt": text}).processes} == {None}


def test_an_engines_file_covers_all_its_workers(read_files):
    text = dump(41, "sglang::scheduler_TP0") + dump(42, "sglang::scheduler_TP1")

    processes = by_pid(read_files({"engine4_schedulers.txt": text}))

    assert (processes[41].engine, processes[41].worker) == (4, 0)
    assert processes[42].key == "engine 4 worker 1"


def test_a_rank_in_an_engines_log_is_a_rank_of_the_engine(read_files):
    line = "[rank1]:[E320 11:20:03.700155 a.cpp:6] [Rank 1] Watchdog caught collective operation"
    line += " timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=8, NumelOut=8,"
    line += " Timeout(ms)=600000) ran for 600008 milliseconds before timing out."

    event = next(
        e for e in read_files({"vllm_server_2.log": line}).log_events if e.kind != "last_line"
    )

    assert (event.rank, event.engine, event.fields["worker"]) == (None, 2, "1")


def test_the_only_engine_is_engine_0_and_of_several_none_is_guessed(read_files):
    one = by_pid(read_files({"a.txt": dump(41, "sglang::scheduler_TP0")}))
    assert one[41].engine == 0

    two = by_pid(read_files({"b.txt": dump(42, "sglang::scheduler_TP0")}))
    assert (two[41].engine, two[42].engine) == (None, None)


def test_a_killed_worker_is_a_dead_process_of_its_engine(read_files):
    log = "[2026-05-11 19:46:58] Subprocess scheduler_2 (pid=27) crashed with exit code -9. T\n"
    dmesg = "[12.3] Memory cgroup out of memory: Killed process 27 (sglang::schedul) total-vm:1kB\n"

    process = by_pid(read_files({"sglang_engine3.log": log, "dmesg": dmesg}))[27]

    assert (process.engine, process.worker, process.status) == (3, 2, "dead")


def test_ranks_that_only_logs_speak_of_are_listed_without_stacks(read_files):
    log = "[rank3]: 2026-05-05 10:00:00 step 7 loss 0.1\n"

    process = read_files({"job.log": log}).processes[0]

    assert (process.key, process.stacks) == ("rank 3", ())


def test_faulthandler_by_rank_and_a_log_by_pid_are_one_process(read_files):
    log = "(FSDPActor pid=41) [2026-05-05 10:00:00.1 actor_cell0_rank2] Timer x start\n"
    text = 'Current thread 0x01 (most recent call first):\n  File "a.py", line 1 in <module>\n'

    evidence = read_files({"a.log": log, "rank2_fault.txt": text})

    assert [(p.rank, p.pid, len(p.stacks)) for p in evidence.processes] == [(2, 41, 1)]


def test_dumps_of_a_node_belong_to_the_one_rank_of_that_node(read_files):
    evidence = read_files(
        {
            "node_a_rank0.log": "[default0]:[2026-05-05 10:00:00] rank 0/2 on a: up\n",
            "node_b_rank1.log": "[default0]:[2026-05-05 10:00:00] rank 1/2 on b: up\n",
            "node_b_stack.txt": dump(41, "python3 sync.py --role trainer"),
        }
    )

    assert by_pid(evidence)[41].rank == 1
    assert evidence.world_size == 2


@pytest.mark.parametrize(
    ("other", "role"),
    [("ray::FSDPActor.x", "driver"), ("sglang::scheduler", "trainer")],
)
def test_a_training_script_is_the_driver_where_ray_actors_train(read_files, other, role):
    text = dump(41, "python3 train.py --config x") + dump(42, other)

    assert by_pid(read_files({"all.txt": text}))[41].role == role


def test_a_torchrun_prefix_is_a_local_rank_that_the_file_overrules(read_files):
    line = "[default1]:[2026-05-05 10:00:00] Timer x start\n"

    events = read_files({"n1_rank9.log": line, "job.log": line}).log_events

    assert {(e.file, e.rank) for e in events} == {("n1_rank9.log", 9), ("job.log", 1)}


def test_files_pasted_into_one_keep_their_names(read_files):
    text = (
        f"==> rank4.txt <==\n{dump(41, 'ray::FSDPActor.x')}==> go.sh <==\npython t.py --aa 1 --bb\n"
    )

    evidence = read_files({"everything": text})

    assert by_pid(evidence)[41].rank == 4
    assert {flag.name for flag in evidence.flags} == {"aa", "bb"}


def test_ranks_in_titles_of_dumps_are_read_whatever_brackets_stand_around(read_files):
    headings = ("===== pid 700 LOCAL_RANK 0 =====", "(RANK 1)", "Rank 2:", "<RANK 3>")
    dumps = [f"{head}\n{dump(700 + i, 'python sft.py')}" for i, head in enumerate(headings)]

    found = by_pid(read_files({"all.txt": "".join(dumps)}))

    assert [found[700 + i].rank for i in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "command",
    [
        "python dpo.py  # LOCAL_RANK=5",
        "python -u dpo.py --local_rank=5 --deepspeed",
        "OMPI_COMM_WORLD_RANK=5 python dpo.py",
        "python dpo.py --rank 5",
    ],
)
def test_a_command_line_gives_its_process_the_rank(read_files, command):
    assert by_pid(read_files({"x.txt": dump(81, command)}))[81].rank == 5


def test_a_data_loaders_worker_is_no_rank_although_it_has_the_ranks_command(read_files):
    frames = "    _worker_loop (torch/utils/data/_utils/worker.py:253)\n"
    worker = f'Process 91: python train.py\n\nThread 91 (idle): "MainThread"\n{frames}\n'
    native = "$ gdb -p 91 -batch -ex bt\n#0  futex_wait (private=0) at ../futex.h:1\n"
    native += "#1  __lll_lock_wait_private (futex=0x1) at ./lowlevellock.c:34\n"
    files = {
        "hostA_rank6.txt": dump(90, "python train.py", "barrier"),
        "hostA_workers.txt": f"# children of 90 (rank 6)\n{worker}{native}",
    }

    found = by_pid(read_files(files))

    assert (found[90].rank, found[91].rank, found[91].role) == (6, None, "other")
    assert [stack.source for stack in found[91].stacks] == ["py-spy", "gdb"]


def test_a_training_librarys_frames_make_a_trainer_of_a_nameless_process(read_files):
    frames = "    all_reduce (torch/distributed/distributed_c10d.py:1)\n    main (job.py:9)\n"
    text = f'Process 12: python3 job.py\n\nThread 12 (idle): "MainThread"\n{frames}\n'

    assert by_pid(read_files({"x.txt": text}))[12].role == "trainer"


@pytest.mark.parametrize(
    "line",
    ["# rank 0 = 410, 1 = 420, 2 = 430 (of the log)", "rank 2: pid 430", "rank=2 pid=430"],
)
def test_maps_of_ranks_are_read_however_they_are_written(read_files, line):
    assert by_pid(read_files({"x.txt": f"{line}\n{dump(430, 'python job.py')}"}))[430].rank == 2


def test_a_list_of_replicas_gives_their_servers_an_index(read_files):
    text = "replica_rank 0 pid 51 10.0.0.4:8000\nreplica_rank 1 pid 52 10.0.0.4:8001\n"
    dumps = dump(51, "ray::vLLMHttpServer") + dump(52, "ray::vLLMHttpServer")

    found = by_pid(read_files({"replicas.txt": text, "x.txt": dumps}))

    assert [(found[pid].role, found[pid].engine) for pid in (51, 52)] == [
        ("engine", 0),
        ("engine", 1),
    ]


def test_the_first_communicator_of_all_gives_pids_their_ranks(read_files):
    line = (
        "h{h}:{pid}:9{pid} [0] NCCL INFO ncclCommInitRank comm 0x5{pid} rank {r} nranks {n} cudaDev"
        " 0 nvmlDev 0 busId 01000 commId 0x7 - Init START\n"
    )
    world = [line.format(h=r // 2, pid=300 + r, r=r, n=4) for r in range(4)]
    later = line.format(h=0, pid=300, r=1, n=2)

    found = read_files({"n.log": "".join(world) + later, "x.txt": dump(302, "python x.py")})

    assert by_pid(found)[302].rank == 2
