"""Whole pages of memory, and tensors that lie on them."""

from __future__ import annotations

import ctypes
import mmap
import os

import torch

PAGE_BYTES = mmap.PAGESIZE

LIBC = ctypes.CDLL(None, use_errno=True)


class Pages(mmap.mmap):
    """Private, zeroed memory in whole pages; unmapped when nothing refers to it any more.

    A tensor made by `tensor_on` keeps a reference, so its memory never goes away under it.

    Attributes:
        address: First byte, page-aligned.
        num_bytes: Length in bytes, a multiple of the page size.
    """

    address: int
    num_bytes: int

    def __new__(cls, num_bytes: int) -> Pages:
        """Map at least `num_bytes` bytes (> 0), rounded up to whole pages."""
        rounded = -(-num_bytes // PAGE_BYTES) * PAGE_BYTES
        # Private, not mmap's default: dropping shared pages would not drop their contents.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        pages = super().__new__(cls, -1, rounded, flags=flags)
        pages.address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        pages.num_bytes = rounded
        return pages


def tensor_on(pages: Pages, like: torch.Tensor, offset: int) -> torch.Tensor:
    """A tensor on `pages` with the dtype, shape and strides of `like`.

    Args:
        pages: Memory to lie on, kept alive by the tensor.
        like: Any strided CPU tensor; its data is not read.
        offset: Where the first element lies, in elements of the dtype of `like`.
    """
    storage = torch.frombuffer(pages, dtype=torch.uint8).untyped_storage()
    tensor = torch.empty(0, dtype=like.dtype)
    return tensor.set_(storage, offset, like.size(), like.stride())


def storage_address(tensor: torch.Tensor) -> int:
    """Where the memory behind a tensor begins; views of one storage share it. Reads no data."""
    return tensor.untyped_storage().data_ptr()


def check_call(result: int, what: str) -> None:
    """Raise the OSError that a libc function left in errno, if it returned -1."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
