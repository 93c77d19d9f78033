"""What the kernel says of a process: status letters and wait channels."""

from __future__ import annotations

from watchdog.evidence import ActivitySample, Process, ThreadActivity

USERFAULT_CHANNELS = frozenset({"handle_userfault"})
"""A read of memory that was released and registered: it waits for someone to fill it."""

SIGNAL_PAUSE_CHANNELS = frozenset({"__do_sys_pause", "do_sys_pause", "sys_pause", "sigsuspend"})
"""A handler that waits for ever (the second way of pausing memory), or a plain `pause()`."""

SLEEP_CHANNELS = frozenset({"hrtimer_nanosleep", "do_nanosleep"})
"""`time.sleep()` and its like."""

SOCKET_CHANNELS = frozenset({"wait_woken", "sk_wait_data", "unix_stream_data_wait"})
"""A read from a socket that has nothing to read."""

FILE_CHANNELS = (
    "folio_wait",
    "wait_on_page",
    "nfs_",
    "rpc_wait",
    "io_schedule",
    "jbd2_",
    "blk_mq",
    "fuse_",
    "request_wait_answer",
    "ceph_",
    "wait_on_buffer",
    "balance_dirty_pages",
)
"""Beginnings of channels of file input and output."""

LOCK_CHANNELS = ("rwsem_down", "down_read", "down_write", "__mutex_lock", "d_alloc_parallel")
"""Beginnings of channels of the kernel's own locks, one of which every inode has."""


MIN_CPU_SHARE = 0.1
"""CPU time a second below which a process is not working."""

MIN_CPU_SHARE_IN_QUEUE = 0.01
"""The same for one that waits for nothing but a CPU."""


def last_activity(process: Process) -> ActivitySample | None:
    """The newest sample, `None` where there is none."""
    return process.activity[-1] if process.activity else None


def thread_in(process: Process, channels: frozenset[str]) -> ThreadActivity | None:
    """A thread that sleeps in one of the channels in the newest sample, main thread first."""
    sample = last_activity(process)
    if sample is None:
        return None
    ordered = sorted(sample.threads, key=lambda thread: thread.tid != process.pid)
    return next((thread for thread in ordered if thread.wchan in channels), None)


def main_thread(process: Process) -> ThreadActivity | None:
    """The main thread's entry in the newest sample."""
    sample = last_activity(process)
    if sample is None or not sample.threads:
        return None
    return next((t for t in sample.threads if t.tid == process.pid), sample.threads[0])


def waits_for_file(thread: ThreadActivity) -> bool:
    """Whether the thread is in uninterruptible file input or output."""
    return thread.wchan.startswith(FILE_CHANNELS)


def waits_for_inode(thread: ThreadActivity) -> bool:
    """Whether it waits, not to be interrupted, for a lock that the kernel holds during a file call.

    The channel is that of any such lock: only a stack that leads into a file makes it this one.
    """
    return thread.state == "D" and thread.wchan.startswith(LOCK_CHANNELS)


def works(process: Process, cpu_share: float) -> bool:
    """Whether it works, by the CPU time a second that it got between its last two samples.

    On a machine with too much to do that may be little: then it stands in the queue for a CPU
    whenever one looks.
    """
    if cpu_share >= MIN_CPU_SHARE:
        return True
    states = [
        next((t.state for t in sample.threads if t.tid == process.pid), "")
        for sample in process.activity[-2:]
    ]
    return cpu_share >= MIN_CPU_SHARE_IN_QUEUE and states == ["R", "R"]


def only_thread_waits_for_lock(process: Process) -> bool:
    """Whether the process has one thread, and that one sleeps on a lock: nobody can release it.

    What a fork leaves of a process whose lock another thread held.
    """
    sample = last_activity(process)
    return (
        sample is not None
        and len(sample.threads) == 1
        and sample.threads[0].wchan.startswith("futex")
    )


def is_dead(process: Process) -> bool:
    """Whether the process is gone or a zombie."""
    return process.status in ("dead", "zombie")


def is_stopped(process: Process) -> bool:
    """Whether a signal or a debugger stopped it (T, t)."""
    if process.status == "stopped":
        return True
    thread = main_thread(process)
    return thread is not None and thread.state in ("T", "t")
