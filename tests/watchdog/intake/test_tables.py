from __future__ import annotations


def process(evidence, pid):
    return next(process for process in evidence.processes if process.pid == pid)


def test_proc_status_and_io_twice_are_two_samples(read_files):
    text = """\
$ date; cat /proc/71/status | egrep 'State|VmRSS'; cat /proc/71/wchan; echo; cat /proc/71/io
Tue May 26 10:24:02 UTC 2026
State:\tD (disk sleep)
VmRSS:\t 2048 kB
folio_wait_bit_common
rchar: 100
read_bytes: 90
$ sleep 60; date; cat /proc/71/status
Tue May 26 10:25:02 UTC 2026
State:\tD (disk sleep)
read_bytes: 190
"""

    found = process(read_files({"session.txt": text}), 71)

    assert found.status == "uninterruptible"
    first, second = found.activity
    assert (first.read_bytes, second.read_bytes) == (90, 190)
    assert first.rss_bytes == 2048 * 1024
    assert first.threads[0].wchan == "folio_wait_bit_common"
    assert second.taken_at_s - first.taken_at_s == 60


def test_capabilities_say_whether_other_processes_may_be_traced(read_files):
    text = "Name:\tpython3\nPid:\t9\nCapEff:\t{}\nSeccomp:\t2\n"

    without = read_files({"status": text.format("00000000a80425fb")})

    assert without.log_events[0].fields["cap_sys_ptrace"] == "no"


def test_top_names_processes_of_the_job_and_their_state(read_files):
    text = """\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
     11 root      20   0  401.2g  88.1g  31.0g D   0.3   4.4 118:22.10 ray::MegatronTrainRayActor.x
     12 root      20   0   41.1g   2.2g   0.6g S   0.0   0.1   2:10.09 sglang::scheduler_TP1
     13 root      20   0   41.1g   2.2g   0.6g S   0.0   0.1   2:10.09 sshd
"""

    evidence = read_files({"top.txt": text})

    assert [p.pid for p in evidence.processes] == [11, 12]
    assert process(evidence, 11).status == "uninterruptible"
    assert process(evidence, 11).activity[0].cpu_s == 118 * 60 + 22.10
    assert (process(evidence, 12).role, process(evidence, 12).worker) == ("engine_worker", 1)


def test_gpus_come_from_csv_box_and_hand_made_table(read_files):
    evidence = read_files(
        {
            "a.csv": "index, utilization.gpu [%], power.draw [W]\n3, 97 %, 120.5 W\n",
            "b.txt": (
                "| NVIDIA-SMI 580.1     Driver Version: 580.1 |\n"
                "|   5  NVIDIA H100                 On  |   00000000:1B:00.0 Off |   0 |\n"
                "| N/A   36C    P0     128W /  700W |   41233MiB /  81559MiB |   100%  Default |\n"
            ),
            "c.txt": "rank  util.gpu  power.draw\n   7  99 %   231.0 W\n",
        }
    )

    events = {event.file: event for event in evidence.log_events if event.kind == "gpu_utilization"}
    assert events["a.csv"].fields == {"index": "3", "util": "97", "power_w": "120.5"}
    assert events["b.txt"].fields["util"] == "100"
    assert events["b.txt"].fields["index"] == "5"
    assert events["c.txt"].rank == 7


def test_sockets_go_to_their_process_and_a_pending_connection_is_an_event(read_files):
    text = """\
# on ip-10-0-0-1, 07:52
State     Recv-Q Send-Q  Local Address:Port      Peer Address:Port  Process
ESTAB     7      0           10.0.0.1:29500       10.0.0.2:49812   users:(("python3",pid=91,fd=4))
SYN-SENT  0      1          127.0.0.1:51022      127.0.0.1:40655   users:(("python3",pid=91,fd=6))
"""
    dump = 'Process 91: python3 train.py\n\nThread 91 (idle): "MainThread"\n    poll (a.py:1)\n'

    evidence = read_files({"ss.txt": text, "d.txt": dump})

    first = process(evidence, 91).sockets[0]
    assert (first.state, first.recv_queue_bytes) == ("ESTABLISHED", 7)
    event = next(event for event in evidence.log_events if event.kind == "socket")
    assert event.fields["remote"] == "127.0.0.1:40655"
    assert event.host == "ip-10-0-0-1"


def test_dead_actors_are_dead_processes(read_files):
    node = "4b0c9d2e1f3a5b6c7d8e9f00a1b2c3d4e5f60718293a4b5c6d7e8f90"
    text = (
        "    ACTOR_ID    CLASS_NAME    STATE   JOB_ID  NAME   NODE_ID   PID  RAY_NAMESPACE\n"
        f" 0  03b2c1f4a7d94e5f8a6b7c8d01000000  VllmGenerationWorker  DEAD  01000000  gen-2  {node}"
        "  771  x\n"
        f" 1  13b2c1f4a7d94e5f8a6b7c8d01000000  ReplayBuffer  ALIVE  01000000   {node}  772  x\n"
    )

    evidence = read_files({"actors.txt": text})

    assert [(p.pid, p.engine, p.status) for p in evidence.processes] == [(771, 2, "dead")]


def test_ras_names_the_rank_that_is_behind(read_files):
    text = """\
  15 ranks have launched up to operation 33371
  1 rank has launched up to operation 33369:  rank 4 -- GPU 3 managed by process 70 on node n3
"""

    event = next(e for e in read_files({"ras": text}).log_events if e.kind == "ras_behind")

    assert (event.rank, event.pid, event.host, event.fields["behind"]) == (4, 70, "n3", "2")


def test_packages_and_mapped_libraries(read_files):
    evidence = read_files(
        {
            "pip.txt": "Package  Version\n-------- -------\ntorch    2.9.1+cu129\nray==2.54.0\n",
            "maps.txt": (
                "== 400\n/usr/lib/libnccl.so.2.27.7\n== 401\n/opt/nccl/lib/libnccl.so.2\n"
                "$ strings /opt/nccl/lib/libnccl.so.2 | grep -m1 'NCCL version'\n"
                "NCCL version 2.30.4+cuda13.0\n"
            ),
            "400.txt": 'Process 400: sglang::scheduler\n\nThread 400 (idle): "MainThread"\n',
            "401.txt": 'Process 401: ray::FSDPActor.x\n\nThread 401 (idle): "MainThread"\n',
        }
    )

    assert evidence.versions["torch"] == "2.9.1+cu129"
    assert evidence.versions["ray"] == "2.54.0"
    assert process(evidence, 400).versions["nccl"] == "2.27.7"
    assert process(evidence, 401).versions["nccl"] == "2.30.4"


def test_environments_of_processes_and_of_the_job(read_files):
    evidence = read_files(
        {
            "session.txt": (
                "$ tr '\\0' '\\n' < /proc/55/environ | grep NCCL\nNCCL_CUMEM_ENABLE=0\n"
                "$ cat /proc/55/status\nState:\tS (sleeping)\n"
            ),
            "env.txt": "NCCL_DEBUG=WARN\nHOME=/root\nHF_TOKEN=hf_aaaaaaaaaaaaaaaa\n",
        }
    )

    assert process(evidence, 55).environment == {"NCCL_CUMEM_ENABLE": "0"}
    assert evidence.environment["NCCL_DEBUG"] == "WARN"
    assert "hf_" not in evidence.environment["HF_TOKEN"]


def test_interfaces_of_a_host(read_files):
    text = "lo    UNKNOWN  127.0.0.1/8\nens5  UP  172.31.41.7/20\n"

    events = read_files({"ip.txt": text}).log_events

    assert [(e.kind, e.fields["name"]) for e in events if e.kind != "last_line"] == [
        ("host_interface", "lo"),
        ("host_interface", "ens5"),
    ]


def test_a_detailed_list_of_actors_tells_which_one_died_and_of_what(read_files):
    text = (
        "---\n-   actor_id: aa11aa11bb22bb22\n    class_name: LLMRayActor\n    state: ALIVE\n"
        "    name: ''\n    pid: 61\n    death_cause: null\n"
        "-   actor_id: cc11aa11bb22bb22\n    class_name: LLMRayActor\n    state: DEAD\n"
        "    name: ''\n    pid: 62\n    death_cause:\n        actor_died_error_context:\n"
        "            error_message: The actor died because its node has died.\n"
    )

    found = {p.pid: (p.role, p.status) for p in read_files({"actors.yaml": text}).processes}

    assert found == {61: ("engine", "running"), 62: ("engine", "dead")}


def test_a_table_whose_header_grep_took_has_the_columns_of_its_command(read_files):
    text = """\
root@node-7:/# date; ps -eo pid,state,wchan:30,etimes,args | grep trainer
Sat Nov 21 06:31:40 UTC 2026
 8801 D  rwsem_down_read_slowpath       493 ray::lora_policy-3:TrainWorker.export
 8802 S  ep_poll                        493 ray::lora_policy-4:TrainWorker
root@node-7:/# cat /proc/8801/io
rchar: 100
read_bytes: 90
"""

    found = process(read_files({"shell.txt": text}), 8801)

    assert (found.rank, found.status) == (3, "uninterruptible")
    assert found.activity[0].threads[0].wchan == "rwsem_down_read_slowpath"
    assert found.activity[-1].read_bytes == 90
