import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import psutil
import pytest

from watchdog import section
from watchdog.capture import (
    Target,
    bounded,
    in_process,
    proc,
    py_spy,
    python_stacks,
    traceback_file,
)
from watchdog.evidence import Frame, Gap, StackSample, ThreadStack

# py-spy may only look where the reader may trace: a process that is not dumpable, read by one
# without CAP_SYS_PTRACE, is refused, for root as well.
UNREADABLE = """
import ctypes, os
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
print("ready", flush=True)
os.read(0, 1)
"""
WITHOUT_PTRACE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 19, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_SYS_PTRACE
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""


def wait_until(condition, timeout_s=10):
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        threading.Event().wait(0.01)


def functions(sample, thread="MainThread"):
    return [f.function for t in sample.threads if t.name == thread for f in t.frames]


def script(folder, text):
    path = folder / "py-spy"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
    path.chmod(0o755)
    return str(path)


def run_without_ptrace(code, *arguments):
    command = [sys.executable, "-c", WITHOUT_PTRACE, code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_main_thread_comes_first_and_its_innermost_call_first(waiting):
    sample = py_spy.dump(waiting.pid)

    assert functions(sample) == ["wait_for_a_line", "<module>"]
    assert [thread.name for thread in sample.threads] == ["MainThread", "loader"]
    assert sample.threads[0].os_thread_id == waiting.pid
    assert sample.source == "py-spy"


def test_functions_have_their_bare_name(waiting):
    sample = py_spy.dump(waiting.pid)

    assert "run" in functions(sample, "loader")


def test_the_holder_of_the_gil_is_seen_from_outside(gil_holder):
    sample = py_spy.dump(gil_holder.pid)

    assert sample.threads[0].owns_gil is True
    assert functions(sample) == ["hold", "<module>"]


def test_native_frames_show_the_call_into_c(gil_holder):
    sample = py_spy.dump(gil_holder.pid, native=True, timeout_s=60)

    frames = sample.threads[0].frames
    assert frames[0].native
    assert "pause" in frames[0].function
    assert "hold" in [frame.function for frame in frames if not frame.native]
    assert sample.source == "py-spy --native"


def test_a_stopped_process_is_read_and_stays_stopped(waiting):
    waiting.send_signal(signal.SIGSTOP)
    wait_until(lambda: proc.state(waiting.pid) == "T")

    sample = py_spy.dump(waiting.pid)
    native = py_spy.dump(waiting.pid, native=True)

    assert functions(sample) == ["wait_for_a_line", "<module>"]
    assert isinstance(native, Gap)
    assert "stopped" in native.why
    assert proc.state(waiting.pid) == "T"


def test_the_process_goes_on_after_both_looks(waiting):
    python_stacks.stacks([waiting.pid])
    python_stacks.stacks([waiting.pid], native=True, timeout_s=60)

    waiting.stdin.write("x")
    waiting.stdin.flush()

    assert waiting.wait(20) == 0


def test_several_processes_are_read_at_once(waiting, gil_holder):
    found = python_stacks.stacks([waiting.pid, gil_holder.pid, 2**22 + 1])

    assert functions(found[waiting.pid])[0] == "wait_for_a_line"
    assert functions(found[gil_holder.pid])[0] == "hold"
    assert "gone" in found[2**22 + 1].why


def test_a_missing_py_spy_is_named_with_the_command_that_installs_it(waiting, monkeypatch):
    monkeypatch.setattr(py_spy, "locate", lambda: None)

    gap = py_spy.dump(waiting.pid)

    assert "not installed" in gap.why
    assert "pip install py-spy" in gap.remedy


def test_a_refusal_names_the_permission_that_is_missing(start):
    process = start(UNREADABLE)

    said = run_without_ptrace(
        "import sys; from watchdog.capture import py_spy\n"
        "gap = py_spy.dump(int(sys.argv[1])); print(gap.why, gap.remedy)",
        process.pid,
    )

    assert "refused" in said
    assert "--cap-add=SYS_PTRACE" in said
    assert "ptrace_scope" in said


def test_a_process_that_nobody_may_read_reads_itself():
    said = run_without_ptrace(
        "import ctypes, os\n"
        "from watchdog.capture import SOURCES, Target, capture\n"
        "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        "def outer(): return capture([Target(os.getpid(), 'rank 0')])[os.getpid()]\n"
        "part = outer()\n"
        "print(part.stacks[0].source, [f.function for f in part.stacks[0].threads[0].frames])\n"
        "print(part.gaps[0].what, part.gaps[0].why, part.gaps[0].remedy)"
    )

    assert "in-process" in said
    assert "'outer'" in said
    assert "stacks of rank 0 by py-spy" in said
    assert "used instead: the process's own view" in said
    assert "--cap-add=SYS_PTRACE" in said


def test_a_process_that_is_not_python_is_told_from_a_refusal():
    process = subprocess.Popen(["sleep", "60"])
    try:
        gap = py_spy.dump(process.pid)
    finally:
        process.kill()
        process.wait(10)

    assert "not a Python process" in gap.why


def test_a_process_that_ended_is_gone_or_a_zombie(waiting):
    waiting.kill()
    wait_until(lambda: proc.state(waiting.pid) == "Z")
    zombie = py_spy.dump(waiting.pid)
    waiting.wait(10)
    gone = py_spy.dump(waiting.pid)

    assert "zombie" in zombie.why
    assert "gone" in gone.why


def test_a_py_spy_that_does_not_answer_is_ended(tmp_path, waiting):
    pid_file = tmp_path / "pid"
    program = script(
        tmp_path,
        f"""
        import os, threading
        open({str(pid_file)!r}, "w").write(str(os.getpid()))
        threading.Event().wait()
        """,
    )

    gap = py_spy.dump(waiting.pid, timeout_s=2, _program=program)

    assert "did not answer" in gap.why
    assert pid_file.exists()
    assert none_is_left(program)


def test_a_process_reads_its_own_native_frames_and_is_never_left_standing(tmp_path, monkeypatch):
    stuck = script(tmp_path, "import threading; threading.Event().wait()")

    sample = py_spy.dump(os.getpid(), native=True, timeout_s=60)
    ended = py_spy.dump(os.getpid(), native=True, timeout_s=1, _program=stuck)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(py_spy, "_hung_at_s", {})
    unguarded = py_spy.dump(os.getpid(), native=True)

    assert any(frame.native for thread in sample.threads for frame in thread.frames)
    assert "ended" in ended.why
    assert "must not stop itself" in unguarded.why
    assert none_is_left(tmp_path / "py-spy")


def none_is_left(program):
    """Whether no process of this program is there, as soon as the kernel has ended them."""
    running = [
        p for p in psutil.process_iter(["cmdline"]) if str(program) in (p.info["cmdline"] or ())
    ]
    return not psutil.wait_procs(running, timeout=20)[1]


def test_a_torn_read_is_read_again(tmp_path, waiting):
    program = script(
        tmp_path,
        f"""
        import os, sys
        os.makedirs({str(tmp_path / "seen")!r}, exist_ok=True)
        tries = len(os.listdir({str(tmp_path / "seen")!r}))
        open(f"{tmp_path}/seen/{{tries}}", "w")
        print('[{{"thread_name": "T", "frames": [{{"name": "f"}}]}}]' if tries == 2 else "[{{")
        """,
    )

    assert isinstance(py_spy.dump(waiting.pid, timeout_s=30, _program=program), StackSample)


def test_three_torn_reads_are_a_gap(tmp_path, waiting):
    program = script(tmp_path, "print('[{')")

    gap = py_spy.dump(waiting.pid, timeout_s=30, _program=program)

    assert "unusable" in gap.why


def test_secrets_in_local_variables_are_masked():
    text = """[{"thread_name": "T", "frames": [{"name": "f", "locals": [
        {"name": "hf_token", "repr": "\\"abcdefgh\\""}, {"name": "n", "repr": "3"},
        {"name": "args", "repr": "Namespace(api_key='abcdefgh')"}]}]}]"""

    frame = py_spy.sample_of_json(text, 1).threads[0].frames[0]

    assert "abcdefgh" not in str(frame)
    assert frame.locals["n"] == "3"


def test_the_watchdogs_own_threads_are_no_part_of_a_sample():
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="weight-sync-capture-9")
    thread.start()
    try:
        sample = python_stacks.collect(Target(os.getpid())).stacks[0]
    finally:
        done.set()
        thread.join()

    assert not [t.name for t in sample.threads if t.name.startswith("weight-sync-capture")]


def test_the_own_view_names_threads_and_puts_the_main_thread_first():
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="reader")
    thread.start()
    try:
        sample = in_process.sample()
    finally:
        done.set()
        thread.join()

    names = [thread.name for thread in sample.threads]
    assert names[0] == "MainThread"
    assert "reader" in names
    assert sample.threads[0].os_thread_id == os.getpid()
    assert sample.threads[0].frames[0].function == "sample"


def test_faulthandlers_timer_speaks_for_a_process_that_nobody_may_read(
    tmp_path, start, monkeypatch
):
    path = tmp_path / "0.faulthandler"
    process = start(
        """
import ctypes, faulthandler, sys
file = open(sys.argv[1], "w")
def hold():
    ctypes.PyDLL(None).pause()
faulthandler.dump_traceback_later(0.1, file=file)
print("ready", flush=True)
hold()
""",
        path,
    )
    wait_until(
        lambda: path.exists() and "hold" in path.read_text() and "<module>" in path.read_text()
    )
    monkeypatch.setattr(py_spy, "locate", lambda: None)

    part = python_stacks.collect(Target(process.pid, "rank 0", path))

    assert functions(part.stacks[0]) == ["hold", "<module>"]
    assert part.stacks[0].source == "faulthandler"
    assert "faulthandler" in part.gaps[0].why


@pytest.mark.parametrize("text", ["", "Timeout (0:00:01)!\n", "nonsense\n"])
def test_a_traceback_file_without_a_dump_is_no_sample(tmp_path, text):
    (tmp_path / "file").write_text(text)

    assert traceback_file.sample(tmp_path / "file") is None


def test_only_the_last_dump_of_a_traceback_file_counts(tmp_path):
    dump = (
        'Timeout (0:00:01)!\nThread 0x01 (most recent call first):\n  File "/a.py", line {} in f\n'
    )
    (tmp_path / "file").write_text(dump.format(1) + dump.format(2))

    sample = traceback_file.sample(tmp_path / "file")

    assert [frame.line for frame in sample.threads[0].frames] == [2]


def test_a_thread_of_ours_that_has_no_name_yet_is_none_of_the_jobs():
    started = [Frame("run", "/usr/lib/python3/threading.py"), Frame("_bootstrap", "threading.py")]
    ours = ThreadStack("", (Frame("read_text", "pathlib.py"), Frame("_work", bounded.__file__)))
    ours_at_its_start = ThreadStack("", (Frame("_work", bounded.__file__), *started))
    theirs = ThreadStack("", (Frame("fetch", "/job/loader.py"), *started))
    marked = ThreadStack("", (Frame("phase", section.__file__), Frame("main", "/job/train.py")))
    sample = StackSample((ours, theirs, ours_at_its_start, marked), "py-spy")

    (seen,) = python_stacks.part_of(Target(os.getpid()), sample).stacks

    assert seen.threads == (theirs, marked)
