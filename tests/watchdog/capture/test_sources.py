import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import pytest

from watchdog import capture as capture_package
from watchdog import rules
from watchdog.capture import (
    SOURCES,
    Target,
    bounded,
    capture,
    environment,
    flags,
    kernel,
    memory,
    proc,
    process_state,
    ptrace,
    sockets,
    versions,
)
from watchdog.capture.target import Part, combined
from watchdog.evidence import Flag, Gap, MemoryRegion
from watchdog.recording import active_flags, memory_ledger


def wait_until(condition, timeout_s=10):
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        threading.Event().wait(0.01)


def source(collect):
    return types.SimpleNamespace(NAME="odd source", collect=collect)


def raises(target):
    raise ZeroDivisionError("by nought")


def test_a_source_that_raises_becomes_a_gap_and_the_others_go_on():
    part = capture([Target(os.getpid(), "rank 3")], [source(raises), process_state])[os.getpid()]

    assert part.gaps[0] == Gap("odd source of rank 3", "ZeroDivisionError: by nought")
    assert part.status == "running"


def test_a_source_that_never_ends_becomes_a_gap_and_the_others_go_on():
    release = threading.Event()
    stuck = source(lambda target: release.wait() and Part())

    part = capture([Target(os.getpid())], [stuck, process_state], timeout_s=1)[os.getpid()]
    release.set()

    assert "not done within 1 s" in part.gaps[0].why
    assert part.status == "running"


def test_every_source_bears_a_process_that_is_gone():
    part = capture([Target(2**22 + 1, "rank 3")])[2**22 + 1]

    assert part.status == "dead"
    assert all("rank 3" in gap.what for gap in part.gaps)


def test_every_module_of_the_package_that_collects_is_in_the_table():
    modules = [m for m in vars(capture_package).values() if isinstance(m, types.ModuleType)]

    assert {m for m in modules if hasattr(m, "collect")} == set(SOURCES)


def test_capture_of_this_process_imports_no_torch():
    code = (
        "import os, sys; from watchdog.capture import capture, Target\n"
        "capture([Target(os.getpid())]); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)

    assert done.stdout == b"False\n"


def test_jobs_that_end_are_had_beside_one_that_does_not():
    release = threading.Event()
    outcomes = bounded.results({"a": lambda: 1, "b": release.wait, "c": lambda: 1 / 0}, timeout_s=1)
    release.set()

    assert outcomes["a"] == 1
    assert isinstance(outcomes["b"], TimeoutError)
    assert isinstance(outcomes["c"], ZeroDivisionError)


def test_a_later_state_clears_the_detail_of_an_earlier_one():
    whole = combined([Part(status="stopped", status_detail="stopped (T)"), Part(status="running")])

    assert (whole.status, whole.status_detail) == ("running", "")


def test_a_detail_without_state_is_added_to_the_state_before():
    whole = combined([Part(status="dead", status_detail="gone"), Part(status_detail="no memory")])

    assert (whole.status, whole.status_detail) == ("dead", "no memory")


def test_counters_and_threads_of_another_process(waiting):
    part = process_state.collect(Target(waiting.pid))

    sample = part.activity[0]
    assert part.status == "running"
    assert "python" in part.command
    assert sample.rss_bytes > 1_000_000
    assert sample.cpu_s is not None
    assert sample.num_open_files >= 3
    assert len(sample.threads) == 2
    assert sample.threads[0].tid == waiting.pid


@pytest.mark.skipif(os.getuid() != 0, reason="the kernel shows wait channels to root alone")
def test_the_kernel_function_that_a_thread_sleeps_in(waiting):
    def wchan():
        return process_state.collect(Target(waiting.pid)).activity[0].threads[0].wchan

    wait_until(lambda: "pipe" in wchan())


def test_a_stopped_process_is_stopped(waiting):
    waiting.send_signal(signal.SIGSTOP)
    wait_until(lambda: proc.state(waiting.pid) == "T")

    part = process_state.collect(Target(waiting.pid))

    assert (part.status, part.status_detail) == ("stopped", "stopped (T)")


def test_a_zombie_says_how_it_ended(start, waiting):
    waiting.kill()
    other = start("print('ready', flush=True); raise SystemExit(3)")
    wait_until(lambda: proc.state(waiting.pid) == proc.state(other.pid) == "Z")

    killed = process_state.collect(Target(waiting.pid))
    ended = process_state.collect(Target(other.pid))

    assert killed.status == "zombie"
    assert "killed by signal 9 (SIGKILL)" in killed.status_detail
    assert "exit status 3" in ended.status_detail


def test_a_password_on_the_command_line_is_masked(start):
    process = start("print('ready', flush=True); input()", "--api-key", "abc-def", "--x", "1")

    command = process_state.collect(Target(process.pid)).command

    assert "abc-def" not in command
    assert command.endswith("--x 1")


def test_connections_with_what_waits_in_them():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
            client.sendall(b"x" * 100)
            found = sockets.collect(Target(os.getpid())).sockets

    listeners = [one for one in found if one.state == "LISTEN"]
    assert f"127.0.0.1:{port}" in [one.local for one in listeners]
    received = [one for one in found if one.local == f"127.0.0.1:{port}" and one.remote]
    assert [one.recv_queue_bytes for one in received] == [100]


def test_the_relevant_variables_of_another_process_are_masked(start):
    process = start(
        "print('ready', flush=True); input()",
        env={"NCCL_DEBUG": "INFO", "RAY_TOKEN": "abc-def", "UNRELATED": "x", "RANK": "3"},
    )

    found = environment.collect(Target(process.pid)).environment

    assert found["NCCL_DEBUG"] == "INFO"
    assert found["RANK"] == "3"
    assert "UNRELATED" not in found
    assert "abc-def" not in str(found)


def test_the_variables_of_this_process_are_those_of_now(monkeypatch):
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth7")

    assert environment.collect(Target(os.getpid())).environment["NCCL_SOCKET_IFNAME"] == "eth7"


def test_versions_are_those_that_are_installed():
    found = versions.collect(Target(os.getpid())).versions

    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "py-spy" in found
    assert found["kernel"] == os.uname().release


def test_only_flags_that_matter_are_kept_and_secrets_masked():
    given = [
        Flag("z_changed", 1, 0),
        Flag("untouched", 1, 1),
        Flag("looked_at", False, False),
        Flag("wandb_key", "abc-def", None),
    ]

    kept = flags.relevant(given, frozenset({"looked_at"}))

    assert [flag.name for flag in kept] == ["looked_at", "wandb_key", "z_changed"]
    assert "abc-def" not in str(kept)


def test_flags_and_memory_come_from_what_was_registered(monkeypatch):
    region = MemoryRegion("param_buffer", "paused_without_copy", 4096)
    rule = types.SimpleNamespace(FLAGS=("looked_at",))
    both = (Flag("looked_at", 0, 0), Flag("other", 0, 0))
    monkeypatch.setattr(active_flags, "snapshot", lambda: both)
    monkeypatch.setattr(memory_ledger, "snapshot", lambda: (region,))
    monkeypatch.setattr(rules, "RULES", (rule,))

    part = capture([Target(os.getpid())], [flags, memory])[os.getpid()]

    assert [flag.name for flag in part.flags] == ["looked_at"]
    assert part.memory == (region,)
    assert part.gaps == ()


@pytest.mark.parametrize(
    ("membership", "file", "text"),
    [
        ("0::/pod/x\n", "pod/x/memory.events", "low 0\noom 2\noom_kill 2\n"),
        ("0::/\n", "memory.events", "oom_kill 2\n"),
        ("9:cpu:/\n4:memory:/y\n", "memory/y/memory.oom_control", "under_oom 0\noom_kill 2\n"),
    ],
)
def test_kills_for_memory_are_counted_by_either_cgroup_version(
    tmp_path, monkeypatch, membership, file, text
):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    read = proc.read_text
    monkeypatch.setattr(kernel, "_CGROUPS", tmp_path)
    monkeypatch.setattr(
        proc, "read_text", lambda path: membership if "/proc/" in str(path) else read(path)
    )

    assert kernel.oom_kills_of_cgroup() == 2


def test_the_kernels_word_on_a_killed_process_is_found(monkeypatch):
    pid = 2**22 + 1
    line = f"Memory cgroup out of memory: Killed process {pid} (python) total-vm:1kB"
    monkeypatch.setattr(kernel, "_kernel_log", lambda: ["booted", line])

    part = kernel.collect(Target(pid))

    assert "out of memory" in part.status_detail
    assert part.log_events[0].kind == "oom_kill"
    assert part.log_events[0].pid == pid


def test_a_kernel_log_that_may_not_be_read_is_a_gap_with_the_command_to_look(monkeypatch):
    def refuse():
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, "_kernel_log", refuse)

    gaps = kernel.collect(Target(2**22 + 1, "rank 3")).gaps

    assert gaps[0].why.endswith("Operation not permitted")
    assert "dmesg" in gaps[0].remedy


def test_asking_for_tracers_never_raises():
    assert ptrace.allow_any_tracer() in (True, False)
    assert "SYS_PTRACE" in ptrace.how_to_allow() or "ptrace_scope" in ptrace.how_to_allow()
