"""Named tensors as bytes, with a checksum a tensor, for the way from trainer to engine."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

_LENGTH = struct.Struct("<Q")


class ChecksumMismatchError(ValueError):
    """A tensor arrived with other bytes than were sent; the message names it."""


def checksum(tensor: Tensor) -> int:
    """The CRC-32 of a tensor's bytes. Reads all of them."""
    return zlib.crc32(_bytes_of(tensor))


def pack_tensors(named_tensors: Iterable[tuple[str, Tensor]]) -> bytes:
    """Write tensors behind each other: header length, JSON header, bytes.

    Args:
        named_tensors: CPU tensors of any dtype and shape; may be empty.

    Returns:
        One bucket. Buckets may be concatenated; `unpack_tensors` reads them all.
    """
    header: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, tensor in named_tensors:
        data = _bytes_of(tensor)
        header.append(_entry(name, tensor, data))
        parts.append(data)
    head = json.dumps(header).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *parts])


def unpack_tensors(data: bytes) -> Iterator[tuple[str, Tensor]]:
    """Read what `pack_tensors` wrote.

    Yields:
        Name and tensor, which owns its memory.

    Raises:
        ChecksumMismatchError: The bytes of a tensor are not those that were sent.
        ValueError: This is not a bucket, or a part of it is missing.
    """
    view = memoryview(data)
    while view:
        if len(view) < _LENGTH.size:
            raise ValueError(f"a bucket ends in {len(view)} stray bytes")
        (head_bytes,) = _LENGTH.unpack(view[: _LENGTH.size])
        header = json.loads(bytes(view[_LENGTH.size : _LENGTH.size + head_bytes]))
        view = view[_LENGTH.size + head_bytes :]
        for entry in header:
            part, view = view[: entry["num_bytes"]], view[entry["num_bytes"] :]
            yield entry["name"], _tensor(entry, bytes(part))


def described(name: str, tensor: Tensor) -> dict[str, Any]:
    """What a receiver must know of a tensor that travels by itself: shape, dtype, checksum."""
    return _entry(name, tensor, _bytes_of(tensor))


def empty_tensor(entry: dict[str, Any]) -> Tensor:
    """Memory for a tensor that `described` describes."""
    return torch.empty(entry["shape"], dtype=getattr(torch, entry["dtype"]))


def check(entry: dict[str, Any], found: int) -> None:
    """Compare a checksum with the one that was sent.

    Raises:
        ChecksumMismatchError: They differ; names the tensor.
    """
    if found != entry["checksum"]:
        raise ChecksumMismatchError(
            f"{entry['name']} arrived with checksum {found:08x}, was sent with "
            f"{entry['checksum']:08x}"
        )


def _entry(name: str, tensor: Tensor, data: bytes) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    entry = {"name": name, "dtype": dtype, "shape": list(tensor.shape)}
    return {**entry, "num_bytes": len(data), "checksum": zlib.crc32(data)}


def _tensor(entry: dict[str, Any], data: bytes) -> Tensor:
    check(entry, zlib.crc32(data))
    dtype = getattr(torch, entry["dtype"])
    flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat.reshape(entry["shape"])


def _bytes_of(tensor: Tensor) -> bytes:
    # A torch operator copies, so the GIL is free while the memory is read: a read that
    # blocks (paused memory) stops this thread and no other.
    copy = tensor.detach().clone(memory_format=torch.contiguous_format)
    return copy.reshape(-1).view(torch.uint8).numpy().tobytes()
