"""Reads that wait by `mprotect`: the fault's handler does nothing but wait.

The pages become inaccessible, and the handler of SIGSEGV is libc's `pause` itself: the
faulting thread sleeps in it (`wchan` reads `__do_sys_pause` on x86-64), and faults again
if it is woken too early. The handler is installed while anything is paused, and whatever
was there before is put back afterwards.

What it hides, and why it is the second choice: a genuine segmentation fault anywhere in
the process waits for ever as well, instead of ending it. Enabling `faulthandler` while
something is paused takes the handler's place: a read then ends the process.

Waking needs a signal to the waiting threads; SIGURG is borrowed for that moment. A thread
that faults in the very instant of the resume, and is not scheduled for the milliseconds
that the wake-up lasts, is missed and waits until the next resume.

Source:
    mprotect(2), pause(2), sigaction(2), mremap(2), proc(5).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import signal
import threading
import time
from typing import ClassVar

from miles.utils.pausable_memory.backup import Backup
from miles.utils.pausable_memory.pages import LIBC, Pages, check_call

_PROT_NONE = 0
_MREMAP_MAYMOVE = 1
_MREMAP_FIXED = 2
_MAP_FAILED = ctypes.c_void_p(-1).value
_SA_RESTART = 0x10000000

_WAKE_ROUNDS = 3
_WAKE_ROUND_S = 0.005
_SIGNAL_TAKEN_WITHIN_S = 1.0

LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.mremap.restype = ctypes.c_void_p
LIBC.mremap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_void_p,
]


class _SigAction(ctypes.Structure):
    """`struct sigaction` of glibc and musl on x86-64 and arm64."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * (1024 // (8 * ctypes.sizeof(ctypes.c_ulong)))),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class PageProtection:
    """The second choice, for machines that refuse `userfaultfd`.

    Raises:
        OSError: `mprotect` is refused as well.
    """

    name: ClassVar[str] = "mprotect"

    def __init__(self) -> None:
        self._blocked: set[int] = set()
        self._previous: _SigAction | None = None
        # Reentrant: a finalizer that calls forget() may run anywhere in block().
        self._lock = threading.RLock()
        scratch = Pages(1)
        _release(scratch)
        _replace(scratch, None)

    def block(self, pages: Pages) -> None:
        """See `Mechanism.block`."""
        with self._lock:
            self._blocked.add(pages.address)
            self._install()
            try:
                _release(pages)
            except OSError:
                self.forget(pages.address)
                raise

    def unblock(self, pages: Pages, backup: Backup | None) -> None:
        """See `Mechanism.unblock`."""
        _replace(pages, backup)
        self.forget(pages.address)

    def wake_readers(self) -> None:
        """See `Mechanism.wake_readers`."""
        # getpid as the handler: it ends the wait, and does nothing else.
        previous = _set_handler(signal.SIGURG, LIBC.getpid, _SA_RESTART)
        try:
            for _ in range(_WAKE_ROUNDS):
                for thread_id in _threads_in_pause():
                    _interrupt(thread_id)
                time.sleep(_WAKE_ROUND_S)
        finally:
            LIBC.sigaction(signal.SIGURG, ctypes.byref(previous), None)

    def forget(self, address: int) -> None:
        """See `Mechanism.forget`."""
        with self._lock:
            self._blocked.discard(address)
            if not self._blocked and self._previous is not None:
                LIBC.sigaction(signal.SIGSEGV, ctypes.byref(self._previous), None)
                self._previous = None

    def _install(self) -> None:
        if self._previous is None:
            self._previous = _set_handler(signal.SIGSEGV, LIBC.pause, 0)


def _set_handler(number: int, function: object, flags: int) -> _SigAction:
    """Make a libc function a signal's handler; what was there before."""
    new, old = _SigAction(), _SigAction()
    new.handler = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    new.flags = flags
    check_call(LIBC.sigaction(number, ctypes.byref(new), ctypes.byref(old)), "sigaction")
    return old


def _release(pages: Pages) -> None:
    check_call(LIBC.mprotect(pages.address, pages.num_bytes, _PROT_NONE), "mprotect")
    pages.madvise(mmap.MADV_DONTNEED)


def _replace(pages: Pages, backup: Backup | None) -> None:
    """Put accessible pages in the place of blocked ones, in one step."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    prot = mmap.PROT_READ | mmap.PROT_WRITE
    num_bytes = pages.num_bytes
    fresh = LIBC.mmap(None, num_bytes, prot, flags, -1, 0)
    check_call(-1 if fresh == _MAP_FAILED else 0, "mmap")
    try:
        for offset, piece, length in backup.contents() if backup is not None else ():
            ctypes.memmove(fresh + offset, piece.address, length)
    except OSError:
        LIBC.munmap(fresh, num_bytes)
        raise
    moved = LIBC.mremap(fresh, num_bytes, num_bytes, _MREMAP_MAYMOVE | _MREMAP_FIXED, pages.address)
    check_call(-1 if moved == _MAP_FAILED else 0, "mremap")


def _threads_in_pause() -> list[int]:
    """The other threads of this process that may be waiting in the handler."""
    others = [int(name) for name in os.listdir("/proc/self/task")]
    others.remove(threading.get_native_id())
    if platform.machine() != "x86_64":
        return others  # there libc's pause is an ordinary poll, which cannot be told apart
    return [thread_id for thread_id in others if _in_pause(thread_id)]


def _in_pause(thread_id: int) -> bool:
    try:
        with open(f"/proc/self/task/{thread_id}/syscall", encoding="ascii") as file:
            return file.read().split(" ", 1)[0] == "34"
    except OSError:
        return _proc_field(thread_id, "wchan").find("pause") >= 0


def _interrupt(thread_id: int) -> None:
    """Signal a thread and see that it took the signal while its handler is in place."""
    LIBC.tgkill(os.getpid(), thread_id, signal.SIGURG)
    give_up_s = time.monotonic() + _SIGNAL_TAKEN_WITHIN_S
    while _is_pending(thread_id, signal.SIGURG) and time.monotonic() < give_up_s:
        time.sleep(0.001)


def _is_pending(thread_id: int, number: int) -> bool:
    for line in _proc_field(thread_id, "status").splitlines():
        if line.startswith("SigPnd:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _proc_field(thread_id: int, name: str) -> str:
    try:
        with open(f"/proc/self/task/{thread_id}/{name}", encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
