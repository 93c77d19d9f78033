"""What the training thread does at each mark: a few stores into the black box, and no more.

Where threads meet:
    - `open_section` and the values of `open_collectives` are replaced by one store each; the
      monitor sees the old one or the new one, never a mixture.
    - `finished_sections` is a deque: appended here, popped by the monitor.
    - Only the thread that opened a section closes it. Sections that are opened while one is
      open are its nested ones: they are counted, and change nothing else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from watchdog import blackbox_layout as layout
from watchdog.blackbox import BlackBox
from watchdog.call_site import CallSites
from watchdog.process_groups import GroupEntry, ProcessGroups

_now_s = time.monotonic


class _Active:
    """What marks are written to in this process; one attribute look-up on the hot path."""

    __slots__ = ("recorder",)

    def __init__(self) -> None:
        self.recorder: Recorder | None = None


active = _Active()


@dataclass(slots=True)
class OpenSection:
    """The section that a thread is in; written by that thread, read by the monitor.

    Attributes:
        name: Name of the section.
        index: Number among the sections of its name, from 1.
        began_s: Monotonic time at its start (s).
        deadline_s: Time that it may take (s).
        deadline_reason: Where the limit came from.
        thread_id: `threading.get_ident` of its thread.
        native_thread_id: Kernel thread id of its thread.
        about: What the caller said about it.
        phase: Current phase, "" before the first mark.
        phase_began_s: Monotonic time of the last mark (s).
        phases: Phase to time spent in it so far (s), without the current one.
        num_nested: Sections that were opened inside.
    """

    name: str
    index: int
    began_s: float
    deadline_s: float
    deadline_reason: str
    thread_id: int
    native_thread_id: int
    about: dict[str, object]
    phase: str = ""
    phase_began_s: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    num_nested: int = 0


@dataclass(frozen=True, slots=True)
class FinishedSection:
    """A section that has ended.

    Attributes:
        section: What it was, with all its phases.
        ended_s: Monotonic time of its end (s).
        raised: Type of the exception that ended it, "" without one.
    """

    section: OpenSection
    ended_s: float
    raised: str


class OpenCollective:
    """A collective that a thread is in: op, group entry, call site, start (monotonic, s)."""

    __slots__ = ("began_s", "event_at", "flags", "group", "op", "site", "thread_id")

    def __init__(self, op: str, thread_id: int) -> None:
        self.op = op
        self.thread_id = thread_id
        self.began_s = 0.0
        self.event_at = 0
        self.flags = 0
        self.group: GroupEntry | None = None
        self.site = ""


class Recorder:
    """Writes marks of sections, phases and collectives. No method raises into the caller.

    Attributes:
        open_section: The open section, `None` outside.
        open_collectives: Thread id to the collective it is in.
        finished_sections: Ended sections that the monitor has not seen yet, oldest first.
        groups: The process groups of this process.
        blackbox_path: File of the black box, `None` where it has none.
    """

    def __init__(
        self, box: BlackBox, deadline_of: Callable[[str], tuple[float, str]] | None = None
    ) -> None:
        self.open_section: OpenSection | None = None
        self.open_collectives: dict[int, OpenCollective] = {}
        self.finished_sections: deque[FinishedSection] = deque(maxlen=1000)
        self.groups = ProcessGroups(box)
        self.deadline_of = deadline_of or (lambda name: (0.0, ""))
        self.blackbox_path = box.path
        self._box = box
        self._sites = CallSites()
        self._indices: dict[str, int] = {}
        self._last_collective: tuple[int, int, int, int, int, int, float] | None = None
        self._last_ended_s = 0.0

    def begin_section(self, name: str, about: dict[str, object]) -> OpenSection | None:
        """Enter a section; returns `None` for a nested one."""
        outer = self.open_section
        if outer is not None:
            outer.num_nested += 1
            return None
        now_s = _now_s()
        index = self._indices[name] = self._indices.get(name, 0) + 1
        deadline_s, reason = self.deadline_of(name)
        section = OpenSection(
            name, index, now_s, deadline_s, reason, threading.get_ident(),
            threading.get_native_id(), about, phase_began_s=now_s,
        )  # fmt: skip
        self._write_last_collective()
        self._box.event(layout.SECTION_BEGINS, self._box.text(name), now_s, sequence=index)
        self._box.section_counted()
        self._write_place(section)
        self.open_section = section
        return section

    def end_section(self, section: OpenSection, raised: str) -> None:
        """Leave the section that `begin_section` returned."""
        now_s = _now_s()
        self._close_phase(section, now_s)
        if self.open_section is section:
            self.open_section = None
        flags = layout.RAISED if raised else 0
        box = self._box
        box.event(
            layout.SECTION_ENDS, box.text(section.name), now_s, sequence=section.index, flags=flags
        )
        box.section(0, 0, 0, 0.0, 0.0, 0.0, 0)
        self.finished_sections.append(FinishedSection(section, now_s, raised))

    def begin_phase(self, name: str) -> str | None:
        """Mark a phase; returns the phase before it, `None` outside of a section."""
        section = self.open_section
        if section is None:
            return None
        now_s = _now_s()
        outer = section.phase
        if outer:
            phases = section.phases
            phases[outer] = phases.get(outer, 0.0) + now_s - section.phase_began_s
        section.phase_began_s = now_s
        section.phase = name
        box = self._box
        name_number = box.text(name)
        box.event(layout.PHASE_BEGINS, name_number, now_s)
        box.section(
            box.text(section.name), name_number, section.index, section.began_s, now_s,
            section.deadline_s, section.native_thread_id,
        )  # fmt: skip
        return outer

    def note(self, text: str) -> None:
        """Write a sentence into the ring."""
        self._box.event(layout.NOTE, self._box.text(text), _now_s())

    def heartbeat(self, now_s: float) -> None:
        """Write that the watchdog thread runs."""
        self._box.heartbeat(now_s)

    def stall_counted(self) -> None:
        """Count one more stall."""
        self._box.stall_counted()

    def begin_collective(
        self,
        op: str,
        group: object,
        num_bytes: int,
        is_async: bool,
        is_counted: bool,
        depth: int = 2,
    ) -> OpenCollective:
        """Enter a collective.

        Args:
            op: Name of the function.
            group: The process group as the caller gave it, `None` = default.
            num_bytes: Payload (bytes), 0 = unknown.
            is_async: Whether it only posts the work.
            is_counted: Whether every member of the group takes part in it, so that it has a
                sequence number; sends and receives have none.
            depth: Frames between here and the caller.
        """
        thread_id = threading.get_ident()
        current = OpenCollective(op, thread_id)
        # First of all: while it is there, what torch calls in turn is not recorded.
        self.open_collectives[thread_id] = current
        box = self._box
        entry = self.groups.entry(group)
        slot, sequence = layout.NO_GROUP, 0
        if entry is not None:
            slot = entry.slot
            if is_counted:
                sequence = entry.entered = entry.entered + 1
                box.group_entered(slot, sequence)
            current.group = entry
        current.site = site = self._sites.of_caller(depth)
        site_number, op_number = box.text(site), box.text(op)
        current.flags = flags = layout.ASYNC if is_async else 0
        current.began_s = now_s = _now_s()
        box.collective(op_number, slot, site_number, flags, sequence, num_bytes, now_s)
        if self.open_section is not None:
            if entry is not None:
                entry.in_section = True
            current.event_at = box.event(
                layout.COLLECTIVE_BEGINS, op_number, now_s, slot, site_number, sequence,
                num_bytes, flags,
            )  # fmt: skip
        else:
            self._last_collective = (
                op_number, slot, site_number, flags, sequence, num_bytes, now_s,
            )  # fmt: skip
        return current

    def end_collective(self, current: OpenCollective, is_counted: bool, raised: bool) -> None:
        """Leave the collective that `begin_collective` returned."""
        now_s = _now_s()
        box = self._box
        box.collective_ended(now_s)
        if current.event_at:
            box.event_ended(current.event_at, now_s)
        else:
            self._last_ended_s = now_s
        if current.group is not None and is_counted:
            current.group.returned += 1
            box.group_returned(current.group.slot, current.group.returned)
        if raised:
            box.collective_raised(current.flags | layout.RAISED)
        self.open_collectives.pop(current.thread_id, None)

    def _write_last_collective(self) -> None:
        last, self._last_collective = self._last_collective, None
        if last is not None:
            op, slot, site, flags, sequence, num_bytes, began_s = last
            self._box.event(
                layout.COLLECTIVE_BEGINS, op, began_s, slot, site, sequence, num_bytes,
                flags | layout.BEFORE_SECTION, self._last_ended_s,
            )  # fmt: skip

    def _write_place(self, section: OpenSection) -> None:
        self._box.section(
            self._box.text(section.name), self._box.text(section.phase), section.index,
            section.began_s, section.phase_began_s, section.deadline_s, section.native_thread_id,
        )  # fmt: skip

    @staticmethod
    def _close_phase(section: OpenSection, now_s: float) -> None:
        if section.phase:
            spent_s = section.phases.get(section.phase, 0.0)
            section.phases[section.phase] = spent_s + now_s - section.phase_began_s
