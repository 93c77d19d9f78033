"""Starts jobs of ranks that hang, each in milliseconds: it has imported all beforehand, and forks.

A line of JSON on standard input is a job: `run`, `folder`, `ways` (one a rank), `nodes` (the node
of each rank) and `settings` (environment variables). The process ids of its ranks appear in
`<folder>/ranks.json` once all of them are where they hang; what they say on standard error in
`<folder>/stderr`. A job ends with its last rank, and everything ends with this process.

Every process of a job looks as if a launcher had started it: its environment can be read in
`/proc`, though it was never executed. Ranks of different nodes share no folder, and do not know
of each other's processes. With `--torch` the ranks of a job are a gloo process group, whose store
rank 0 holds; nodes meet there.
"""

import ctypes
import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from functools import partial
from pathlib import Path

from watchdog.guest import host_timer  # noqa: F401 (what the start-up hook would have imported)

sys.path.append(str(Path(__file__).parents[2]))
from shown_environment import ShownEnvironment

RUN_VARIABLE = "MILES_WATCHDOG_RUN"
# What a process imports at a stall, or on the way to it: here it is paid for once.
PREPARED = (
    "watchdog.section",
    "watchdog.process_watch",
    "watchdog.node.duties",
    "watchdog.node.correspondent",
    "watchdog.capture.ptrace",
    "watchdog.incident",
)
# By which signal a rank is made to lose a thread of its watchdog, or never to give back the GIL.
ENDS_THREAD = {
    "monitor": (signal.SIGUSR1, "weight-sync-watchdog"),
    "incident": (signal.SIGUSR2, "weight-sync-watchdog-incident"),
    "node": (signal.SIGRTMIN, "weight-sync-watchdog-node"),
    "files": (signal.SIGRTMIN + 1, "weight-sync-watchdog-files"),
}
HOLD_THE_GIL = signal.SIGRTMIN + 2
_PR_SET_PDEATHSIG = 1
_CLONE_NEWUTS = 0x04000000
libc = ctypes.CDLL(None)
ENVIRONMENT = ShownEnvironment()


def main():
    if "--torch" in sys.argv:
        importlib.import_module("torch.distributed")
    warm_up()
    signal.signal(signal.SIGCHLD, reap)
    for line in sys.stdin:
        fork_into(be_job, **json.loads(line))


def warm_up():
    """Import what an incident needs, and compile its patterns and templates."""
    for name in PREPARED:
        importlib.import_module(name)
    from watchdog.capture import in_process
    from watchdog.diagnosis import diagnose
    from watchdog.evidence import Evidence, Process
    from watchdog.reports import REPORTS

    rank = Process("rank 0", "trainer", rank=0, stacks=(in_process.sample(),))
    evidence = Evidence("watchdog", processes=(rank,), world_size=1)
    for report in REPORTS.values():
        report.render(evidence, diagnose(evidence), None)


def reap(*_):
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def fork_into(work, *arguments, **named):
    """Do the work in a child, which runs nothing else of this process and ends with it."""
    if pid := os.fork():
        return pid
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        work(*arguments, **named)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)


def be_job(run, folder, ways, nodes, settings):
    """Be the launcher of one job."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(settings)
    ENVIRONMENT.set(**{RUN_VARIABLE: run, "WORLD_SIZE": str(len(ways))})
    error = os.open(f"{folder}/stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDWR)
    for target, descriptor in enumerate((null, null, error)):
        os.dup2(descriptor, target)
    ready_read, ready_write = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as store:
        pids = [
            fork_into(be_rank, rank, node, way, store, ready_write)
            for rank, (node, way) in enumerate(zip(nodes, ways, strict=True))
        ]
    os.close(ready_write)
    for _ in ways:
        assert os.read(ready_read, 1), "a rank has failed"
    unfinished = Path(folder, ".ranks.json")
    unfinished.write_text(json.dumps(pids))
    unfinished.rename(Path(folder, "ranks.json"))
    for pid in pids:
        os.waitpid(pid, 0)
    os._exit(0)


def be_rank(rank, node, way, store, ready):
    ENVIRONMENT.set(RANK=str(rank), LOCAL_RANK=str(rank))
    move_to(node)
    for number, name in ENDS_THREAD.values():
        signal.signal(number, partial(end_thread, name))
    signal.signal(HOLD_THE_GIL, hold_the_gil)
    if "--torch" in sys.argv:
        join_process_group(rank, store)
    hang(way, ready)


def move_to(node):
    """Be on that node: with its host name, its own name of the run, and its own folder."""
    ENVIRONMENT.set(**{RUN_VARIABLE: os.environ[RUN_VARIABLE][:-1] + str(node)})
    os.environ["MILES_WATCHDOG_DIR"] += f"/node-{node}"
    # Not everybody may.
    if libc.unshare(_CLONE_NEWUTS) == 0:
        socket.sethostname(f"node-{node}")


def join_process_group(rank, listening):
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    host, port = listening.getsockname()
    is_host = rank == 0
    num_ranks = int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        host, port, num_ranks, is_host, master_listen_fd=listening.fileno() if is_host else None
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=num_ranks)


def hang(way, ready):
    from watchdog.section import phase, weight_sync

    if way == "never_arrives":
        with weight_sync("warm_up"):
            pass
        os.write(ready, b"r")
        threading.Event().wait()
    with weight_sync():
        phase("read_weights" if way == "hold_the_gil" else "barrier:entry")
        os.write(ready, b"r")
        hold_the_gil() if way == "hold_the_gil" else wait_in_barrier()


def wait_in_barrier():
    threading.Event().wait()


def hold_the_gil(*_):
    # A signal would end the call.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).pause()


def end_thread(name, *_):
    # CPython takes a thread that is just being started for the one that starts it.
    for starting in tuple(threading._limbo):
        starting._started.wait(10)
    for thread in threading.enumerate():
        if thread.name == name:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )


if __name__ == "__main__":
    main()
