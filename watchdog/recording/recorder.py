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
from sys import _getframe
from typing import NamedTuple

from watchdog.blackbox import layout
from watchdog.blackbox.writing import BlackBox
from watchdog.recording.call_site import CallSites
from watchdog.recording.process_groups import GroupEntry, ProcessGroups
from watchdog.run.incident_ids import section_name

_now_s = time.monotonic
_NO_GROUP = layout.NO_GROUP


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
        phase_began_s: Monotonic time at which it began (s).
        phases: Phase to time spent in it so far (s), without the current one.
        num_nested: Sections that were opened inside.
        marked: Last phase that has an event in the black box, "" before the first.
        marked_s: Time in that event (s).
        marked_at: Its place in the black box.
        num_marks: How often it was marked since.
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
    marked: str = ""
    marked_s: float = 0.0
    marked_at: int = 0
    num_marks: int = 0


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


class OpenCollective(NamedTuple):
    """A collective that a thread is in.

    Attributes:
        op: Name of the function.
        began_s: Monotonic time at its start (s).
        group: The group's entry, `None` where unknown.
    """

    op: str
    began_s: float
    group: GroupEntry | None


class Recorder:
    """Writes marks of sections, phases and collectives. No method raises into the caller.

    Attributes:
        open_section: The open section, `None` outside.
        open_collectives: Thread id to the fields of the `OpenCollective` it is in.
        finished_sections: Ended sections that the monitor has not seen yet, oldest first.
        groups: The process groups of this process.
        blackbox_path: File of the black box, `None` where it has none.
    """

    def __init__(
        self, box: BlackBox, deadline_of: Callable[[str], tuple[float, str]] | None = None
    ) -> None:
        self.open_section: OpenSection | None = None
        self.open_collectives: dict[int, tuple[str, float, GroupEntry | None]] = {}
        self.finished_sections: deque[FinishedSection] = deque(maxlen=1000)
        self.groups = ProcessGroups(box)
        self.deadline_of = deadline_of or (lambda name: (0.0, ""))
        self.blackbox_path = box.path
        self._box = box
        self._sites = CallSites(box.text)
        self._indices: dict[str, int] = {}

    def begin_section(self, name: str, about: dict[str, object]) -> OpenSection | None:
        """Enter a section; returns `None` for a nested one."""
        outer = self.open_section
        if outer is not None:
            outer.num_nested += 1
            return None
        name = section_name(name)
        now_s = _now_s()
        index = self._indices[name] = self._indices.get(name, 0) + 1
        deadline_s, reason = self.deadline_of(name)
        section = OpenSection(
            name, index, now_s, deadline_s, reason, threading.get_ident(),
            threading.get_native_id(), about, phase_began_s=now_s,
        )  # fmt: skip
        self._box.keep_last_collective()
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
        """Mark a phase; returns the phase before it, `None` outside of a section.

        A phase that is marked again is no new event, it is counted: a generator marks one for
        each of its items. Nor is the way back to no phase at all.
        """
        section = self.open_section
        if section is None:
            return None
        now_s = _now_s()
        outer = section.phase
        box = self._box
        name_number = box.text(name)
        if name != outer:
            if outer:
                phases = section.phases
                phases[outer] = phases.get(outer, 0.0) + now_s - section.phase_began_s
            section.phase_began_s = now_s
            section.phase = name
            box.section(
                box.text(section.name), name_number, section.index, section.began_s, now_s,
                section.deadline_s, section.native_thread_id,
            )  # fmt: skip
        if name:
            section.num_marks += 1
            if name != section.marked or not box.phase_marked_again(
                section.marked_at, section.marked_s, section.num_marks, now_s
            ):
                section.marked_at = box.event(layout.PHASE_BEGINS, name_number, now_s, sequence=1)
                section.marked, section.marked_s, section.num_marks = name, now_s, 1
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
        thread_id: int,
        op: str,
        group: object,
        num_bytes: int,
        is_async: bool,
        is_counted: bool,
    ) -> int:
        """Enter a collective, called by the function that stands in for it.

        From here to `end_collective` what torch calls in turn is not recorded.

        Args:
            thread_id: `threading.get_ident()`.
            op: Name of the function.
            group: The process group as the caller gave it, `None` = default.
            num_bytes: Payload (bytes), 0 = unknown.
            is_async: Whether it only posts the work.
            is_counted: Whether every member of the group takes part in it, so that it has a
                sequence number; sends and receives have none.

        Returns:
            Its place in the black box, for `end_collective`.
        """
        box = self._box
        entry = self.groups.entry(group)
        slot, sequence = _NO_GROUP, 0
        is_in_section = self.open_section is not None
        if entry is not None:
            slot = entry.slot
            if is_counted:
                sequence = entry.entered = entry.entered + 1
                box.group_entered(slot, sequence)
            if is_in_section:
                entry.in_section = True
        site = self._sites.number_of(_getframe(2))
        op_number = box.text_number(op) or box.text(op)
        now_s = _now_s()
        self.open_collectives[thread_id] = (op, now_s, entry)
        return box.collective(
            op_number, slot, site, is_async is True, sequence, num_bytes, now_s, is_in_section
        )

    def end_collective(self, thread_id: int, at: int, raised: bool) -> None:
        """Leave the collective that `begin_collective` entered at this place."""
        self._box.collective_ended(at, _now_s())
        if raised:
            self._box.collective_raised(at)
        self.open_collectives.pop(thread_id, None)

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
