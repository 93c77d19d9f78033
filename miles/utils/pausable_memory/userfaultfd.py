"""Reads that wait by `userfaultfd`: the kernel holds the thread until the page is supplied.

The waiting thread shows `handle_userfault` in `/proc/<pid>/task/<tid>/wchan`.

Source:
    userfaultfd(2), ioctl_userfaultfd(2) and linux/userfaultfd.h. `UFFD_USER_MODE_ONLY`
    (Linux 5.11) needs no privilege, and is why system calls get EFAULT instead of waiting.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import platform
import struct
from typing import ClassVar

from miles.utils.pausable_memory.backup import Backup
from miles.utils.pausable_memory.pages import LIBC, Pages, check_call

_SYSCALL_NUMBER = {"x86_64": 323, "aarch64": 282}

_UFFD_USER_MODE_ONLY = 1
_UFFD_API = 0xAA
_UFFDIO_API = 0xC018AA3F
_UFFDIO_REGISTER = 0xC020AA00
_UFFDIO_UNREGISTER = 0x8010AA01
_UFFDIO_COPY = 0xC028AA03
_UFFDIO_ZEROPAGE = 0xC020AA04
_REGISTER_MODE_MISSING = 1


class UserFaultFd:
    """The first choice: exact, and touches nothing else in the process.

    Raises:
        OSError: The kernel or a system-call filter refuses (EPERM, ENOSYS), or the
            machine's architecture is not known here (ENOSYS).
    """

    name: ClassVar[str] = "userfaultfd"

    def __init__(self) -> None:
        number = _SYSCALL_NUMBER.get(platform.machine())
        if number is None:
            raise OSError(errno.ENOSYS, f"unknown architecture {platform.machine()}")
        flags = os.O_CLOEXEC | os.O_NONBLOCK | _UFFD_USER_MODE_ONLY
        self._fd = LIBC.syscall(number, flags)
        check_call(self._fd, self.name)
        try:
            self._try_out()
        except OSError:
            os.close(self._fd)
            raise

    def block(self, pages: Pages) -> None:
        """See `Mechanism.block`."""
        register = struct.pack("QQQQ", pages.address, pages.num_bytes, _REGISTER_MODE_MISSING, 0)
        fcntl.ioctl(self._fd, _UFFDIO_REGISTER, register)
        # After registering: between the two a reader sees the old bytes, never zeros.
        pages.madvise(mmap.MADV_DONTNEED)

    def unblock(self, pages: Pages, backup: Backup | None) -> None:
        """See `Mechanism.unblock`."""
        # Drops what an earlier attempt restored before its backup failed; else nothing.
        pages.madvise(mmap.MADV_DONTNEED)
        if backup is None:
            self._zero(pages.address, pages.num_bytes)
        else:
            for offset, piece, num_bytes in backup.contents():
                self._copy(pages.address + offset, piece.address, num_bytes)
        unregister = struct.pack("QQ", pages.address, pages.num_bytes)
        fcntl.ioctl(self._fd, _UFFDIO_UNREGISTER, unregister)

    def wake_readers(self) -> None:
        """Nothing to do: supplying a page wakes its readers."""

    def forget(self, address: int) -> None:
        """Nothing to do: unmapping takes the registration along."""

    def _try_out(self) -> None:
        fcntl.ioctl(self._fd, _UFFDIO_API, struct.pack("QQQ", _UFFD_API, 0, 0))
        scratch = Pages(1)
        self.block(scratch)
        self.unblock(scratch, None)

    def _copy(self, to: int, source: int, num_bytes: int) -> None:
        done = 0
        while done < num_bytes:
            request = struct.pack("QQQQq", to + done, source + done, num_bytes - done, 0, 0)
            done += self._supply(_UFFDIO_COPY, request)

    def _zero(self, to: int, num_bytes: int) -> None:
        done = 0
        while done < num_bytes:
            request = struct.pack("QQQq", to + done, num_bytes - done, 0, 0)
            done += self._supply(_UFFDIO_ZEROPAGE, request)

    def _supply(self, operation: int, request: bytes) -> int:
        """Supply pages; bytes done, which may be fewer than asked for.

        The last field of either request is where the kernel says how far it came.
        """
        answer = bytearray(request)
        try:
            fcntl.ioctl(self._fd, operation, answer)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
        return max(0, int.from_bytes(answer[-8:], "little", signed=True))
