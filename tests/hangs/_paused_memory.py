"""Memory that was paused without a copy: reading it blocks in the kernel for ever."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import struct

import torch

_SYS_USERFAULTFD = {"x86_64": 323, "aarch64": 282}[platform.machine()]
_UFFD_USER_MODE_ONLY = 1
_UFFDIO_API = 0xC018AA3F
_UFFDIO_REGISTER = 0xC020AA00
_UFFDIO_UNREGISTER = 0x8010AA01
_REGISTER_MODE_MISSING = 1


class PausedTensor:
    """A tensor whose pages are released; `resume` gives it empty ones and wakes the readers."""

    def __init__(self, num_bytes: int) -> None:
        self._map = mmap.mmap(-1, num_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.tensor = torch.frombuffer(self._map, dtype=torch.float32)
        self._start, self._num_bytes = self.tensor.data_ptr(), num_bytes
        self._fd = -1

    def pause(self) -> None:
        """Drop the pages; from now on a read waits for `resume`."""
        flags = os.O_CLOEXEC | _UFFD_USER_MODE_ONLY
        self._fd = ctypes.CDLL(None, use_errno=True).syscall(_SYS_USERFAULTFD, flags)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "userfaultfd refused")
        fcntl.ioctl(self._fd, _UFFDIO_API, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
        self._map.madvise(mmap.MADV_DONTNEED)
        span = (self._start, self._num_bytes, _REGISTER_MODE_MISSING, 0)
        fcntl.ioctl(self._fd, _UFFDIO_REGISTER, bytearray(struct.pack("QQQQ", *span)))

    def resume(self) -> None:
        """Let reads through again. Unregistering wakes who waits."""
        fcntl.ioctl(self._fd, _UFFDIO_UNREGISTER, struct.pack("QQ", self._start, self._num_bytes))
        os.close(self._fd)
