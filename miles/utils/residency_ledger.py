"""What lies in pausable memory, written down as it happens.

The real `torch_memory_saver` cannot be asked what is paused, and asking it for a host copy
that does not exist ends the process. So allocations, pauses and resumes are noted here.

Where threads meet: nobody takes a lock, and nobody reads a tensor's data. Adding and
removing an allocation is one dictionary store; a reader copies the dictionary, which
Python does in one step. A pause notes the allocation as paused before its memory is gone,
a resume notes it as resident after the memory is back: a reader may see an allocation
paused that is still readable, never the other way round.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from miles.utils.pausable_memory.backup import Backup
from miles.utils.pausable_memory.pages import Pages, storage_address

_NUM_NAMES_SHOWN = 5


@dataclass(eq=False)
class Allocation:
    """One stretch of pausable memory: the storage behind one or more tensors.

    Attributes:
        tag: The region that it was allocated in.
        address: First byte.
        num_bytes: Length in bytes, whole pages.
        wants_backup: Whether its bytes are kept while it is paused.
        pages: The memory; dead once no tensor lies on it any more.
        is_paused: Whether a read would wait.
        backup: The copy, while it is paused and wants one.
        names: Tensors known to lie on it, in the order in which they were named.
    """

    tag: str
    address: int
    num_bytes: int
    wants_backup: bool
    pages: weakref.ref[Pages]
    is_paused: bool = False
    backup: Backup | None = None
    names: tuple[str, ...] = ()


class Ledger:
    """All allocations of one process that are alive."""

    def __init__(self) -> None:
        self._allocations: dict[int, Allocation] = {}

    def add(
        self, pages: Pages, tag: str, wants_backup: bool, on_death: Callable[[Allocation], None]
    ) -> None:
        """Note new memory; it is forgotten by itself when its last tensor dies.

        Args:
            pages: The memory. Only a weak reference is kept.
            tag: Its region.
            wants_backup: Whether a pause keeps its bytes.
            on_death: Called just before the memory is unmapped, in any thread.
        """
        allocation = Allocation(
            tag, pages.address, pages.num_bytes, wants_backup, weakref.ref(pages)
        )
        self._allocations[pages.address] = allocation
        finalizer = weakref.finalize(pages, self._forget, allocation, on_death)
        finalizer.atexit = False

    def find(self, tensor: torch.Tensor) -> Allocation | None:
        """The allocation that a tensor lies on; `None` where its memory is never paused."""
        return self._allocations.get(storage_address(tensor))

    def allocations(self, tag: str | None = None) -> list[Allocation]:
        """Those of one region, or all, in the order in which they were allocated."""
        alive = self._allocations.copy().values()
        return [each for each in alive if tag is None or each.tag == tag]

    def name_tensors(self, named_tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Note what the tensors are called, so that an observer can name them."""
        for name, tensor in named_tensors:
            allocation = self.find(tensor)
            if allocation is not None and name not in allocation.names:
                allocation.names += (name,)

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """See `residency.residency_snapshot`."""
        by_tag: dict[str, list[Allocation]] = {}
        for allocation in self.allocations():
            by_tag.setdefault(allocation.tag, []).append(allocation)
        return {tag: _summary(allocations) for tag, allocations in by_tag.items()}

    def _forget(self, allocation: Allocation, on_death: Callable[[Allocation], None]) -> None:
        self._allocations.pop(allocation.address, None)
        on_death(allocation)


def _summary(allocations: list[Allocation]) -> dict[str, Any]:
    names = [name for each in allocations for name in each.names]
    targets = {each.backup.target for each in allocations if each.backup is not None}
    num_paused = sum(each.is_paused for each in allocations)
    return {
        "paused": num_paused > 0,
        "bytes": sum(each.num_bytes for each in allocations),
        "num_tensors": sum(len(each.names) or 1 for each in allocations),
        "num_allocations": len(allocations),
        "num_allocations_paused": num_paused,
        "has_backup": all(each.wants_backup for each in allocations),
        "backup_target": min(targets, default=None),
        "first_tensors": names[:_NUM_NAMES_SHOWN],
    }


LEDGER = Ledger()
