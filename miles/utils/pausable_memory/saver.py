"""The memory saver: regions, pausing and resuming."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from miles.utils.disk_offload import DEFAULT_DISK_CHUNK_MB, DEFAULT_DISK_DIR
from miles.utils.pausable_memory.backup import (
    Backup,
    BackupTarget,
    DiskBackup,
    DiskFile,
    HostBackup,
)
from miles.utils.pausable_memory.mechanism import Mechanism, MechanismName, choose_mechanism
from miles.utils.pausable_memory.pages import Pages, tensor_on
from miles.utils.pausable_memory.region_mode import RegionMode
from miles.utils.residency_ledger import LEDGER, Allocation, Ledger


class _ThreadRegions(threading.local):
    """The regions that a thread is in, innermost last; `None` stands for `disable()`."""

    def __init__(self) -> None:
        self.stack: list[RegionMode | None] = []


class TorchMemorySaver:
    """Regions of memory that can be paused and resumed by tag.

    Use the module's one instance, `torch_memory_saver`. Methods may be called from any
    thread; `pause` and `resume` run one at a time. Unlike the real package, pausing what
    is paused and resuming what is resident does nothing, and `get_cpu_backup` never ends
    the process.

    Args:
        ledger: Where allocations are noted.
        choose: How to find the mechanism.
    """

    def __init__(
        self,
        ledger: Ledger = LEDGER,
        choose: Callable[[MechanismName], Mechanism] = choose_mechanism,
    ) -> None:
        self._ledger = ledger
        self._choose = choose
        self._backend: MechanismName = "auto"
        self._backup_target: BackupTarget = "cpu"
        self._disk_dir = DEFAULT_DISK_DIR
        self._disk_chunk_mb = DEFAULT_DISK_CHUNK_MB
        self._mechanism: Mechanism | None = None
        self._regions = _ThreadRegions()
        # Held while memory is copied, never while paused memory is read.
        self._lock = threading.RLock()

    @property
    def mechanism_name(self) -> str | None:
        """`userfaultfd` or `mprotect`; `None` as long as no region was entered."""
        return None if self._mechanism is None else self._mechanism.name

    def configure(
        self,
        backend: MechanismName = "auto",
        backup_target: BackupTarget = "cpu",
        disk_dir: str = DEFAULT_DISK_DIR,
        disk_chunk_mb: int = DEFAULT_DISK_CHUNK_MB,
    ) -> None:
        """Choose how readers wait and where backups go.

        Args:
            backend: `auto` takes the first of `userfaultfd` and `mprotect` that is allowed.
            backup_target: Where a pause keeps the bytes of regions that want a backup.
            disk_dir: Folder for backups on disk; made when needed, left empty.
            disk_chunk_mb: Most MiB written or read at once, above 0.

        Raises:
            RuntimeError: Something is paused.
            PausingRefusedError: The machine refuses the mechanism.
        """
        with self._lock:
            if any(each.is_paused for each in self._ledger.allocations()):
                raise RuntimeError("resume everything before configuring the memory saver again")
            self._mechanism = self._choose(backend)
            self._backend = backend
            self._backup_target = backup_target
            self._disk_dir = disk_dir
            self._disk_chunk_mb = disk_chunk_mb

    @contextmanager
    def region(self, tag: str = "default", enable_cpu_backup: bool = False) -> Iterator[None]:
        """Allocate in pausable memory what this thread allocates inside the block.

        Regions nest; the innermost one counts.

        Args:
            tag: What `pause` and `resume` call it.
            enable_cpu_backup: Keep the bytes over a pause (on the host, or on disk if so
                configured). Without it they come back as zeros.

        Raises:
            PausingRefusedError: The machine refuses every mechanism.
        """
        mechanism = self._ready_mechanism()

        def allocate(num_bytes: int) -> Pages:
            pages = Pages(num_bytes)
            self._ledger.add(
                pages, tag, enable_cpu_backup, lambda dead: mechanism.forget(dead.address)
            )
            return pages

        mode = RegionMode(allocate, self._is_innermost)
        with self._entered(mode), mode:
            yield

    @contextmanager
    def disable(self) -> Iterator[None]:
        """Inside, this thread allocates ordinary memory, and its `pause` does nothing."""
        with self._entered(None):
            yield

    def pause(self, tag: str | None = None) -> None:
        """Release a region's memory, or everything; whoever reads it waits from now on.

        Either every backup succeeds or nothing is paused.

        Args:
            tag: The region; `None` is all of them.

        Raises:
            OSError: A backup on disk could not be written.
        """
        if self._regions.stack and self._regions.stack[-1] is None:
            return
        with self._lock:
            resident = [
                (each, pages)
                for each in self._ledger.allocations(tag)
                if not each.is_paused and (pages := each.pages()) is not None
            ]
            back_up = self._backup_maker()
            backups = [back_up(pages) if each.wants_backup else None for each, pages in resident]
            for (allocation, pages), backup in zip(resident, backups, strict=True):
                self._pause_one(allocation, pages, backup)

    def resume(self, tag: str | None = None) -> None:
        """Give a region its memory back, or everything: the backup's bytes, or zeros.

        Args:
            tag: The region; `None` is all of them.

        Raises:
            OSError: A backup on disk could not be read; that memory stays paused.
        """
        with self._lock:
            mechanism = self._ready_mechanism()
            paused = [each for each in self._ledger.allocations(tag) if each.is_paused]
            try:
                for allocation in paused:
                    pages = allocation.pages()
                    if pages is not None:
                        mechanism.unblock(pages, allocation.backup)
                    allocation.is_paused = False
                    allocation.backup = None
            finally:
                if paused:
                    mechanism.wake_readers()

    def get_cpu_backup(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The host copy of a paused tensor, without reading the tensor.

        Returns:
            A CPU tensor of the same dtype, shape and strides, to be read only; it stays
            alive, but goes stale once the region is resumed. `None` where the tensor is
            not paused, or has no copy on the host (its region keeps none, or on disk).
        """
        allocation = self._ledger.find(tensor)
        backup = None if allocation is None else allocation.backup
        if not isinstance(backup, HostBackup):
            return None
        return tensor_on(backup.pages, tensor.detach(), int(tensor.storage_offset()))

    def _ready_mechanism(self) -> Mechanism:
        with self._lock:
            if self._mechanism is None:
                self._mechanism = self._choose(self._backend)
            return self._mechanism

    def _backup_maker(self) -> Callable[[Pages], Backup]:
        if self._backup_target == "cpu":
            return HostBackup
        disk = DiskFile(self._disk_dir, self._disk_chunk_mb << 20)
        return lambda pages: DiskBackup(pages, disk)

    def _pause_one(self, allocation: Allocation, pages: Pages, backup: Backup | None) -> None:
        # Noted first: an observer must not believe memory resident that is gone.
        allocation.backup = backup
        allocation.is_paused = True
        try:
            self._ready_mechanism().block(pages)
        except OSError:
            allocation.is_paused = False
            allocation.backup = None
            raise

    @contextmanager
    def _entered(self, region: RegionMode | None) -> Iterator[None]:
        self._regions.stack.append(region)
        try:
            yield
        finally:
            self._regions.stack.pop()

    def _is_innermost(self, region: RegionMode) -> bool:
        return self._regions.stack[-1] is region


torch_memory_saver = TorchMemorySaver()
