"""The memory-mapped record of one process: where it is, and its last few hundred events.

The training thread writes it with a few stores: no system call, no lock, no allocation that
lasts. Anyone may read it at any time, also after `kill -9`; see `read_blackbox`.

Where threads meet: one event number is taken by `itertools.count`, and one `pack_into` runs
under the GIL, so two threads never share a slot of the ring. The section record holds what was
written last.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import mmap
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from watchdog.blackbox import layout
from watchdog.blackbox.reading import BlackBoxReading

# Looked up as globals of this module on the hot path, not as attributes of another.
_EVENTS_AT, _OUTSIDE_AT, _CURRENT_AT = layout.EVENTS_AT, layout.OUTSIDE_AT, layout.CURRENT_AT
_EVENT_ENDED_AT, _COLLECTIVE_BEGINS = layout.EVENT_ENDED_AT, layout.COLLECTIVE_BEGINS
_EVENT_TIME_AT, _EVENT_SEQUENCE_AT = layout.EVENT_TIME_AT, layout.EVENT_SEQUENCE_AT
_TIME = layout.EVENT_ENDED


class BlackBox:
    """Writes one black box.

    Attributes:
        path: The file, `None` where it lies in anonymous memory.
        text_number: Number of a text that is in the table already, `None` if it is not: the
            fast half of `text`.
    """

    def __init__(self, memory: mmap.mmap, identity: Mapping[str, Any], path: Path | None) -> None:
        self.path = path
        self._memory = memory
        self._texts: dict[str, int] = {"": 0}
        self._next_event = itertools.count(1).__next__
        self._next_version = itertools.count(1).__next__
        self._pack_event = layout.EVENT.pack_into
        self._pack_section = layout.SECTION.pack_into
        self._pack_ended = layout.EVENT_ENDED.pack_into
        self._pack_count = layout.COUNT.pack_into
        self.text_number = self._texts.get
        self._num_stalls = 0
        self._num_sections = 0
        self.set_identity(identity)
        layout.HEADER.pack_into(
            memory, 0, layout.MAGIC, layout.VERSION, layout.SIZE, time.monotonic(), time.time()
        )

    @classmethod
    def create(cls, path: Path, identity: Mapping[str, Any]) -> BlackBox:
        """Create the file, complete before it has its name.

        All of it is allocated at once: a store into a page that a full disk cannot provide
        would end the process by SIGBUS.

        Args:
            path: Its final name; its folder must exist. An older file is replaced.
            identity: JSON values: rank, world_size, host, pid, role …, at most 4 kB.

        Raises:
            OSError: The file cannot be created or allocated.
        """
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(unfinished, flags, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, layout.SIZE)
            box = cls(mmap.mmap(descriptor, layout.SIZE), identity, path)
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return box

    @classmethod
    def anonymous(cls, identity: Mapping[str, Any]) -> BlackBox:
        """Keep the box in memory that ends with the process; nobody outside can read it."""
        return cls(mmap.mmap(-1, layout.SIZE), identity, None)

    def keep_to_the_end(self) -> None:
        """Never free the map, for the box that this process writes to.

        A map holds a descriptor of its file and closes it with itself; by then the number may
        be that of a file of the host, which closed all that it did not know.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Replace what the box says about its process."""
        data = json.dumps(identity).encode()
        if len(data) > layout.IDENTITY_BYTES - layout.IDENTITY_LENGTH.size:
            data = b"{}"
        at = layout.IDENTITY_AT
        # Length 0 while the text changes: a reader sees none rather than half of it.
        layout.IDENTITY_LENGTH.pack_into(self._memory, at, 0)
        start = at + layout.IDENTITY_LENGTH.size
        self._memory[start : start + len(data)] = data
        layout.IDENTITY_LENGTH.pack_into(self._memory, at, len(data))

    def text(self, text: str) -> int:
        """Return the number of a text, entering it into the table when it is new.

        The table keeps 1023 texts of at most 190 bytes (UTF-8); what does not fit has number 0.
        """
        number = self._texts.get(text)
        return self._enter_text(text) if number is None else number

    def _enter_text(self, text: str) -> int:
        number = len(self._texts)
        if number >= layout.NUM_TEXTS:
            return 0
        data = text.encode(errors="replace")[: layout.TEXT_BYTES - layout.TEXT_LENGTH.size]
        at = layout.TEXTS_AT + number * layout.TEXT_BYTES
        self._memory[at + 2 : at + 2 + len(data)] = data
        layout.TEXT_LENGTH.pack_into(self._memory, at, len(data))
        self._texts[text] = number
        return number

    def event(
        self,
        kind: int,
        name: int,
        now_s: float,
        group: int = layout.NO_GROUP,
        site: int = 0,
        sequence: int = 0,
        num_bytes: int = 0,
        flags: int = 0,
        ended_s: float = 0.0,
    ) -> int:
        """Write one event into the ring; returns its place."""
        version = self._next_event()
        at = _EVENTS_AT + version % 512 * 64
        self._pack_event(
            self._memory, at, version, now_s, kind, flags, name, group, site, sequence,
            num_bytes, ended_s, version,
        )  # fmt: skip
        return at

    def phase_marked_again(self, at: int, began_s: float, num_marks: int, now_s: float) -> bool:
        """Count one more mark of the phase whose event is at this place.

        Returns:
            `False` where the ring has gone round since, and another event lies there.
        """
        if _TIME.unpack_from(self._memory, at + _EVENT_TIME_AT)[0] != began_s:
            return False
        self._pack_count(self._memory, at + _EVENT_SEQUENCE_AT, num_marks)
        self._pack_ended(self._memory, at + _EVENT_ENDED_AT, now_s)
        return True

    def section(
        self,
        name: int,
        phase: int,
        index: int,
        began_s: float,
        phase_began_s: float,
        deadline_s: float,
        tid: int,
    ) -> None:
        """Write where the process is; name 0 = in no section."""
        version = self._next_version()
        self._pack_section(
            self._memory, layout.SECTION_AT, version, name, phase, index, began_s,
            phase_began_s, deadline_s, tid, version,
        )  # fmt: skip

    def section_counted(self) -> None:
        """Count one more section."""
        self._num_sections += 1
        self._write_counters()

    def stall_counted(self) -> None:
        """Count one more stall."""
        self._num_stalls += 1
        self._write_counters()

    def _write_counters(self) -> None:
        layout.COUNTERS.pack_into(
            self._memory, layout.COUNTERS_AT, self._num_stalls, self._num_sections
        )

    def collective(
        self,
        op: int,
        group: int,
        site: int,
        flags: int,
        sequence: int,
        num_bytes: int,
        now_s: float,
        is_in_section: bool,
    ) -> int:
        """Write the collective that is now entered; returns its place.

        In a section it goes into the ring, else into a place of its own. Written out rather
        than composed: this is the hot path, and each call costs.
        """
        number = self._next_event()
        at = _EVENTS_AT + number % 512 * 64 if is_in_section else _OUTSIDE_AT
        self._pack_event(
            self._memory, at, number, now_s, _COLLECTIVE_BEGINS, flags, op, group, site,
            sequence, num_bytes, 0.0, number,
        )  # fmt: skip
        self._pack_count(self._memory, _CURRENT_AT, at)
        return at

    def collective_ended(self, at: int, now_s: float) -> None:
        """Write that the collective at this place has returned."""
        self._pack_ended(self._memory, at + _EVENT_ENDED_AT, now_s)

    def collective_raised(self, at: int) -> None:
        """Write that the collective at this place has raised."""
        layout.EVENT_FLAGS.pack_into(self._memory, at + layout.EVENT_FLAGS_AT, layout.RAISED)

    def keep_last_collective(self) -> None:
        """Copy the last collective outside of any section into the ring, as a section begins."""
        values = layout.EVENT.unpack_from(self._memory, _OUTSIDE_AT)
        number, began_s, _, flags, op, group, site, sequence, num_bytes, ended_s, _ = values
        if not number:
            return
        flags |= layout.BEFORE_SECTION
        kind = layout.COLLECTIVE_BEGINS
        at = self.event(kind, op, began_s, group, site, sequence, num_bytes, flags, ended_s)
        if layout.CURRENT.unpack_from(self._memory, _CURRENT_AT)[0] == _OUTSIDE_AT:
            layout.CURRENT.pack_into(self._memory, _CURRENT_AT, at)
        self._pack_count(self._memory, _OUTSIDE_AT, 0)

    def group(
        self, slot: int, name: int, description: int, ranks: tuple[int, ...], timeout_s: float
    ) -> None:
        """Write one process group into its slot, with its counters at 0."""
        data = layout.ranks_text(ranks).encode()
        at = layout.GROUPS_AT + slot * layout.GROUP_BYTES
        layout.GROUP.pack_into(
            self._memory, at, 1, name, description, len(ranks), 0, 0, timeout_s, len(data), 0
        )
        start = at + layout.GROUP.size
        self._memory[start : start + len(data)] = data

    def group_gone(self, slot: int) -> None:
        """Free the slot of a destroyed group."""
        layout.STATE.pack_into(self._memory, layout.GROUPS_AT + slot * layout.GROUP_BYTES, 0)

    def group_entered(self, slot: int, count: int) -> None:
        """Write how many collectives of the group were entered so far."""
        at = layout.GROUPS_AT + slot * layout.GROUP_BYTES + layout.GROUP_ENTERED_AT
        self._pack_count(self._memory, at, count)

    def heartbeat(self, now_s: float) -> None:
        """Write that the watchdog thread runs."""
        layout.HEARTBEAT.pack_into(self._memory, layout.HEARTBEAT_AT, now_s)

    def exited(self) -> None:
        """Write that the process ends on its own."""
        layout.STATE.pack_into(self._memory, layout.STATE_AT, layout.EXITED)

    def reading(self) -> BlackBoxReading:
        """Read this box as anyone else would."""
        return BlackBoxReading.from_memory(self._memory)
