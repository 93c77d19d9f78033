from __future__ import annotations

import json

import pytest

PYSPY = """\
Process 812: ray::LoraActor.push
Python v3.12.3 (/usr/bin/python3.12)

Thread 812 (idle): "MainThread"
    recv_into (ssl.py:1167)
    push (trainer/push.py:40)
        Arguments:
            self: <Pusher at 0x7f>
            api_key: "sk-abcdefghijklmnop"
        Locals:
            step: 3
    <module> (run.py:9)
Thread 0x7F2A (active+gil): "uploader"
    memcpy (libc.so.6)
    upload (trainer/push.py:77)
Thread 899 (idle)
    <module> (<string>:1)
"""


def test_a_py_spy_dump_gives_threads_frames_and_locals(read_files):
    process = read_files({"dump.txt": PYSPY}).processes[0]

    assert process.pid == 812
    assert process.command == "ray::LoraActor.push"
    main, uploader, unnamed = process.stacks[0].threads
    assert (main.name, main.active, main.owns_gil) == ("MainThread", False, None)
    assert [frame.function for frame in main.frames] == ["recv_into", "push", "<module>"]
    assert main.frames[1].file == "trainer/push.py"
    assert main.frames[1].line == 40
    assert main.frames[1].locals["step"] == "3"
    assert (uploader.active, uploader.owns_gil) == (True, True)
    assert uploader.frames[0].native
    assert unnamed.name == ""


def test_a_secret_among_the_locals_is_masked(read_files):
    process = read_files({"dump.txt": PYSPY}).processes[0]

    assert "sk-abc" not in process.stacks[0].threads[0].frames[1].locals["api_key"]


def test_native_frames_name_the_source(read_files):
    assert read_files({"d.txt": PYSPY}).processes[0].stacks[0].source == "py-spy --native"


def test_one_file_with_many_processes_is_cut_at_each(read_files):
    dumps = "\n".join(PYSPY.replace("812", str(pid)) for pid in (51, 52, 53))

    evidence = read_files({"all.txt": dumps})

    assert [process.pid for process in evidence.processes] == [51, 52, 53]


def test_headings_say_whose_each_dump_is(read_files):
    dumps = "".join(
        f"### {part} rank {rank}\n" + PYSPY.replace("812", pid)
        for part, rank, pid in (("actor", 4, "70"), ("rollout", 1, "71"))
    )

    trainer, engine = read_files({"all.txt": dumps}).processes

    assert (trainer.rank, trainer.engine, trainer.pid) == (4, None, 70)
    assert (engine.rank, engine.engine, engine.pid) == (None, 1, 71)


def test_py_spy_json_is_told_by_its_content(read_files):
    frame = {"name": "wait", "filename": "/lib/x.py", "short_filename": "x.py", "line": 7}
    threads = [
        {"pid": 9, "thread_id": 1, "thread_name": None, "active": True, "owns_gil": False,
         "os_thread_id": 11, "frames": []},
        {"pid": 9, "thread_id": 2, "thread_name": "MainThread", "active": False,
         "owns_gil": True, "os_thread_id": 9, "frames": [frame]},
    ]  # fmt: skip

    process = read_files({"rank7.dat": json.dumps(threads)}).processes[0]

    assert (process.rank, process.pid) == (7, 9)
    assert process.stacks[0].threads[0].name == "MainThread"
    assert process.stacks[0].threads[0].owns_gil is True
    assert process.stacks[0].threads[0].frames[0].function == "wait"


def test_faulthandler_finds_the_main_thread_by_its_outermost_call(read_files):
    text = """\
Timeout (0:00:05)!
Thread 0x00007f10 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 1032 in _bootstrap

Current thread 0x00007f20 (most recent call first):
  File "/app/loop.py", line 12 in spin
  File "/app/main.py", line 3 in <module>
"""

    process = read_files({"rank2_stderr.txt": text}).processes[0]

    assert process.rank == 2
    assert process.stacks[0].source == "faulthandler"
    assert process.stacks[0].threads[0].name == "MainThread"
    assert process.stacks[0].threads[0].frames[0].function == "spin"


def test_a_fatal_error_is_an_event(read_files):
    evidence = read_files({"err.txt": "Fatal Python error: Segmentation fault\n\n"})

    assert [(e.kind, e.fields["error"]) for e in evidence.log_events] == [
        ("fatal_error", "Segmentation fault")
    ]


def test_gdb_calls_the_lowest_thread_the_main_one(read_files):
    text = """\
Thread 2 (Thread 0x7f1 (LWP 4402) "worker"):
#0  0x00007f11 in poll () from /lib/libc.so.6
Thread 1 (Thread 0x7f0 (LWP 4401) "python3"):
#0  futex_wait (addr=0x1) at ../sysdeps/nptl/futex.h:146
#1  0x00007f22 in c10d::Store::wait (this=0x0) from /opt/torch/lib/libtorch_cpu.so
"""

    process = read_files({"bt.txt": text}).processes[0]

    assert process.pid == 4401
    main = process.stacks[0].threads[0]
    assert main.name == "MainThread"
    assert [frame.function for frame in main.frames] == ["futex_wait", "c10d::Store::wait"]
    assert main.frames[1].file == "libtorch_cpu.so"
    assert all(frame.native for frame in main.frames)


def test_pystack_is_turned_innermost_first_and_keeps_the_gil(read_files):
    text = """\
Traceback for thread 333 (python3) [Has the GIL] (most recent call last):
    (Python) File "/app/main.py", line 3, in <module>
        main()
    (Python) File "/app/main.py", line 2, in main
    (C) File "???", line 0, in __poll (libc.so.6)
"""

    process = read_files({"stack.txt": text}).processes[0]

    thread = process.stacks[0].threads[0]
    assert process.pid == 333
    assert thread.owns_gil is True
    assert [frame.function for frame in thread.frames] == ["__poll", "main", "<module>"]
    assert thread.frames[0].native
    assert thread.frames[0].file == "libc.so.6"


def test_a_later_dump_of_the_same_process_is_a_second_sample(read_files):
    later = PYSPY.replace("recv_into (ssl.py:1167)", "send (ssl.py:1)")

    process = read_files({"rank0.txt": PYSPY, "rank0_after_a_while.txt": later}).processes[0]

    innermost = [sample.threads[0].frames[0].function for sample in process.stacks]
    assert innermost == ["recv_into", "send"]


def test_times_in_file_names_order_the_samples(read_files):
    log = "[2026-02-03 10:00:00] Timer push start\n"
    first = PYSPY.replace("recv_into (ssl.py:1167)", "early (a.py:1)")

    evidence = read_files({"rank0.t2_1020.txt": PYSPY, "rank0.t1_1015.txt": first, "a.log": log})

    samples = evidence.processes[0].stacks
    assert samples[0].threads[0].frames[0].function == "early"
    assert samples[1].taken_at_s - samples[0].taken_at_s == 300


def test_periodic_dumps_carry_their_own_time_and_failures(read_files):
    text = (
        "===== [debug-pyspy] ts=1780000000 processes=2 =====\n"
        "----- [debug-pyspy] pid=812 cmd=ray::MegatronTrainRayActor.push\n"
        + PYSPY
        + "----- [debug-pyspy] pid=77 cmd=sglang::scheduler_TP1 DUMP FAILED: Permission denied\n"
        "===== [debug-pyspy] ts=1780000060 processes=1 =====\n"
        "----- [debug-pyspy] pid=812 cmd=ray::MegatronTrainRayActor.push\n" + PYSPY
    )

    evidence = read_files({"driver.log": text})

    trainer = next(process for process in evidence.processes if process.pid == 812)
    worker = next(process for process in evidence.processes if process.pid == 77)
    assert [sample.taken_at_s for sample in trainer.stacks] == [1780000000.0, 1780000060.0]
    assert worker.gaps[0].why == "Permission denied"


def test_a_dump_printed_through_a_log_prefix_is_read(read_files):
    text = "".join(f"(RolloutManager pid=5, ip=10.0.0.1) {line}\n" for line in PYSPY.splitlines())

    process = next(p for p in read_files({"job.log": text}).processes if p.pid == 812)

    assert len(process.stacks[0].threads) == 3


@pytest.mark.parametrize("noise", ["", "wandb: syncing", "UserWarning: old", "\n\nplain words"])
def test_a_traceback_survives_noise_between_its_lines(read_files, noise):
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 4, in push\n'
        f'{noise}\n  File "b.py", line 9, in send\nRuntimeError: pidfd_getfd: Operation denied\n'
        "[2026-05-05 10:00:03] Received sigquit from a child process.\n"
    )

    events = {event.kind: event for event in read_files({"s.log": text}).log_events}

    assert events["traceback"].fields["exception"] == "RuntimeError"
    assert events["traceback"].fields["function"] == "send"
    assert {"cuda_ipc_refused", "engine_child_failed"} <= set(events)


def test_a_remote_error_of_ray_keeps_task_and_innermost_exception(read_files):
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 4, in push\n    get(x)\n'
        "ray.exceptions.RayTaskError(TimeoutError): ray::Engine.flush() (pid=88, ip=10.0.0.3, x)\n"
        '  File "e.py", line 46, in flush\n    raise TimeoutError("no")\nTimeoutError: no\n'
    )

    events = read_files({"s.log": text}).log_events
    fields = next(event.fields for event in events if event.kind == "traceback")

    assert (fields["exception"], fields["message"]) == ("TimeoutError", "no")
    assert (fields["task"], fields["task_pid"]) == ("ray::Engine.flush", "88")
    assert fields["function"] == "flush"


def test_a_traceback_whose_first_line_alone_has_the_loggers_prefix_is_whole(read_files):
    text = (
        "[Job][RANK 4][2026-03-02 08:14:49][ERROR] Traceback (most recent call last):\n"
        '  File "/job/a.py", line 3, in connect\n'
        "    store = open_store()\n"
        "OSError: [Errno 98] Address already in use\n"
        "[Job][RANK 5][2026-03-02 08:14:50][INFO] waiting\n"
    )

    found = [e for e in read_files({"a.log": text}).log_events if e.kind == "traceback"]

    assert [(e.rank, e.fields["exception"]) for e in found] == [(4, "OSError")]
