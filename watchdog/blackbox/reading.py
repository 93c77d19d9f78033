"""Reads a black box, of a live process or of a dead one. Standard library only."""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from watchdog.blackbox import layout
from watchdog.errors import UnusableInputError
from watchdog.evidence import Collective, Mark, Position, Process

_Memory = bytes | mmap.mmap
# A record is torn for less than a microsecond; a few fresh looks get past it.
_LOOKS = 5
# A box keeps 512 marks; what a report and a rule look at are the last ones.
_MAX_MARKS = 128
_MAX_COLLECTIVES = 32
_MAX_LABEL_CHARS = 40


@dataclass(frozen=True)
class GroupReading:
    """One process group as its member counted it.

    Attributes:
        name: Name of the group, "" for the default group.
        description: What its creator called it, often "".
        ranks: Global ranks, ascending.
        num_ranks: Their number, also where the list was too long for the box.
        entered: Collectives entered so far, from 1 on the sequence number of the last one.
        timeout_s: Time-out of the group (s), 0 where unknown.
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    num_ranks: int
    entered: int
    timeout_s: float

    @property
    def label(self) -> str:
        """For people, and the same on every member alone: `gloo_group of ranks 0-3`."""
        if not self.name:
            return ""
        name = self.description or f"group {self.name}"
        ranks = layout.ranks_text(self.ranks)
        if len(ranks) > _MAX_LABEL_CHARS or self.num_ranks > len(self.ranks):
            ranks = f"{self.ranks[0]} and {self.num_ranks - 1} more" if self.ranks else ""
        return f"{name} of rank{'' if self.num_ranks == 1 else 's'} {ranks}" if ranks else name


@dataclass(frozen=True)
class EventReading:
    """One event of the ring. Times are monotonic seconds of the host.

    Attributes:
        number: Counted from 1 over the life of the process.
        kind: `section`, `phase`, `collective`, `section_end`, `note`.
        name: Section, phase, op or text.
        at_s: When.
        ended_s: When a collective returned, 0 before.
        flags: `ASYNC`, `RAISED`, `BEFORE_SECTION` of the layout.
        group: Slot of the group, `None` = none.
        call_site: `file:line function`, or "".
        sequence: Sequence number in the group, or index of the section; 0 = none.
        num_bytes: Payload (bytes), 0 = unknown.
    """

    number: int
    kind: str
    name: str
    at_s: float
    ended_s: float
    flags: int
    group: int | None
    call_site: str
    sequence: int
    num_bytes: int


@dataclass(frozen=True)
class BlackBoxReading:
    """All that a black box says. Times are monotonic seconds of its host.

    Attributes:
        identity: `rank`, `world_size`, `host`, `pid`, `role`, `framework`, `started_at_s`
            (wall clock), `pid_started_ticks` … as written; empty while it is being rewritten.
        exited: Whether the process said that it ends on its own.
        clock_offset_s: Wall-clock time minus monotonic time (s).
        section: Open section, "" = none.
        section_index: Number of this section among those of its name, from 1.
        section_began_s: When it was entered.
        phase: Current phase, "" = none.
        phase_began_s: When it began.
        deadline_s: Time that the section may take (s).
        section_tid: Kernel thread id that opened the section.
        collective: The current or last collective as an event, `None` before the first.
        heartbeat_s: When the watchdog thread last ran, 0 before it did.
        training_heartbeat_s: When the training thread last wrote anything.
        num_stalls: Stalls noticed so far.
        num_sections: Sections so far.
        groups: Slot to process group.
        events: The ring, oldest first; torn ones are left out.
        num_torn: Records that were torn, 0 but for a process that died in the middle.
    """

    identity: dict[str, Any]
    exited: bool
    clock_offset_s: float
    section: str
    section_index: int
    section_began_s: float
    phase: str
    phase_began_s: float
    deadline_s: float
    section_tid: int
    collective: EventReading | None
    heartbeat_s: float
    training_heartbeat_s: float
    num_stalls: int
    num_sections: int
    groups: dict[int, GroupReading]
    events: tuple[EventReading, ...]
    num_torn: int

    @classmethod
    def from_memory(cls, memory: _Memory, *, with_events: bool = True) -> BlackBoxReading:
        """Read a box from its bytes or its mapping.

        Raises:
            UnusableInputError: It is not a black box, or one of another version.
        """
        offset_s = _clock_offset(memory)
        texts = _Texts(memory)
        events, num_torn = _events(memory, texts) if with_events else ((), 0)
        collective, collective_torn = _collective(memory, texts)
        place, place_torn = _whole(memory, layout.SECTION, layout.SECTION_AT)
        section, phase, index, began_s, phase_began_s, deadline_s, tid = place[1:8]
        num_stalls, num_sections = layout.COUNTERS.unpack_from(memory, layout.COUNTERS_AT)
        return cls(
            identity=_identity(memory),
            exited=layout.STATE.unpack_from(memory, layout.STATE_AT)[0] == layout.EXITED,
            clock_offset_s=offset_s,
            section=texts[section],
            section_index=index,
            section_began_s=began_s,
            phase=texts[phase],
            phase_began_s=phase_began_s,
            deadline_s=deadline_s,
            section_tid=tid,
            collective=collective,
            heartbeat_s=layout.HEARTBEAT.unpack_from(memory, layout.HEARTBEAT_AT)[0],
            training_heartbeat_s=_last_store_s(events, collective, phase_began_s),
            num_stalls=num_stalls,
            num_sections=num_sections,
            groups=_groups(memory, texts),
            events=events,
            num_torn=num_torn + collective_torn + place_torn,
        )

    @property
    def rank(self) -> int | None:
        """Global rank, `None` where unknown."""
        rank = self.identity.get("rank")
        return rank if isinstance(rank, int) else None


def read_blackbox(path: Path | str, *, with_events: bool = True) -> BlackBoxReading:
    """Read the black box of a process that runs or once ran.

    Args:
        path: The file, or the link to it in a run folder.
        with_events: Whether to read the ring as well; without, it costs a tenth.

    Raises:
        UnusableInputError: It cannot be opened, is no black box, or of another version.
    """
    try:
        with open(path, "rb") as file:
            memory = file.read(layout.SIZE)
    except OSError as error:
        raise UnusableInputError(f"{path}: {error.strerror or error}") from error
    try:
        return BlackBoxReading.from_memory(memory, with_events=with_events)
    except UnusableInputError as error:
        raise UnusableInputError(f"{path}: {error}") from error


def with_position(process: Process, reading: BlackBoxReading, now_s: float) -> Process:
    """The process with what its black box says: where it is, and its last collectives.

    Args:
        process: The writer of the box.
        reading: What the box said.
        now_s: The time now on the clock of the box (monotonic, s).
    """
    place = position(reading, now_s)
    return replace(
        process,
        position=replace(place, history=place.history[-_MAX_MARKS:]),
        collectives=collectives(reading, now_s)[-_MAX_COLLECTIVES:],
    )


def position(reading: BlackBoxReading, now_s: float) -> Position:
    """Where the process is, as evidence.

    Args:
        reading: Its black box.
        now_s: Monotonic time of its host (s): now, or of the reading for a copied box.
    """
    in_section = bool(reading.section)
    current = reading.collective
    return Position(
        section=reading.section,
        section_index=reading.section_index if in_section else 0,
        section_age_s=now_s - reading.section_began_s if in_section else None,
        phase=reading.phase,
        phase_age_s=now_s - reading.phase_began_s if reading.phase else None,
        collective=_as_collective(reading, current, now_s) if current else None,
        heartbeat_age_s=now_s - reading.heartbeat_s if reading.heartbeat_s else None,
        history=tuple(_mark(reading, event, now_s) for event in reading.events),
    )


def collectives(reading: BlackBoxReading, now_s: float) -> tuple[Collective, ...]:
    """All collectives that the ring still knows, oldest first, and the current one."""
    found = {
        (event.at_s, event.name): event for event in reading.events if event.kind == "collective"
    }
    if reading.collective is not None:
        found[(reading.collective.at_s, reading.collective.name)] = reading.collective
    ordered = sorted(found.values(), key=lambda event: event.at_s)
    return tuple(_as_collective(reading, event, now_s) for event in ordered)


def _as_collective(reading: BlackBoxReading, event: EventReading, now_s: float) -> Collective:
    group = None if event.group is None else reading.groups.get(event.group)
    finished = event.ended_s > 0 and not event.flags & layout.ASYNC
    return Collective(
        op=event.name,
        group=group.label if group else "",
        group_ranks=group.ranks if group else (),
        sequence=event.sequence or None,
        num_bytes=event.num_bytes or None,
        call_site=event.call_site,
        finished=finished,
        waited_s=None if event.ended_s else now_s - event.at_s,
    )


def _mark(reading: BlackBoxReading, event: EventReading, now_s: float) -> Mark:
    parts = []
    if event.kind == "collective":
        group = None if event.group is None else reading.groups.get(event.group)
        parts += [group.label or "default group"] if group else []
        parts += [f"number {event.sequence}"] if event.sequence else []
        parts += ["posted"] if event.flags & layout.ASYNC else []
        parts += ["before the section"] if event.flags & layout.BEFORE_SECTION else []
        took_s = event.ended_s - event.at_s
        parts += [f"took {took_s:.3f} s"] if event.ended_s else ["not returned"]
        parts += [f"at {event.call_site}"] if event.call_site else []
    elif event.kind == "phase":
        last_age_s = now_s - event.ended_s if event.sequence > 1 else None
        return Mark(event.kind, event.name, now_s - event.at_s, "", event.sequence, last_age_s)
    elif event.sequence:
        parts.append(f"number {event.sequence}")
    parts += ["raised"] if event.flags & layout.RAISED else []
    return Mark(event.kind, event.name, now_s - event.at_s, ", ".join(parts))


def _clock_offset(memory: _Memory) -> float:
    if len(memory) < layout.SIZE:
        raise UnusableInputError("not a black box: too short")
    magic, version, _, monotonic_s, wall_s = layout.HEADER.unpack_from(memory, 0)
    if magic != layout.MAGIC:
        raise UnusableInputError("not a black box")
    if version != layout.VERSION:
        raise UnusableInputError(f"black box of version {version}, this is {layout.VERSION}")
    return float(wall_s - monotonic_s)


def _identity(memory: _Memory) -> dict[str, Any]:
    (length,) = layout.IDENTITY_LENGTH.unpack_from(memory, layout.IDENTITY_AT)
    start = layout.IDENTITY_AT + layout.IDENTITY_LENGTH.size
    try:
        identity = json.loads(bytes(memory[start : start + min(length, layout.IDENTITY_BYTES)]))
    except ValueError:
        return {}
    return identity if isinstance(identity, dict) else {}


class _Texts:
    """The table of texts; a number that was never entered reads as ""."""

    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def __getitem__(self, number: int) -> str:
        if not 0 < number < layout.NUM_TEXTS:
            return ""
        at = layout.TEXTS_AT + number * layout.TEXT_BYTES
        (length,) = layout.TEXT_LENGTH.unpack_from(self._memory, at)
        data = bytes(self._memory[at + 2 : at + 2 + min(length, layout.TEXT_BYTES - 2)])
        return data.decode(errors="replace")


def _whole(memory: _Memory, record: Any, at: int) -> tuple[tuple[Any, ...], int]:
    values = record.unpack_from(memory, at)
    for _ in range(_LOOKS):
        if values[0] == values[-1]:
            return values, 0
        values = record.unpack_from(memory, at)
    return values, 1


def _collective(memory: _Memory, texts: _Texts) -> tuple[EventReading | None, int]:
    (at,) = layout.CURRENT.unpack_from(memory, layout.CURRENT_AT)
    if not layout.EVENTS_AT <= at <= layout.OUTSIDE_AT:
        return None, 0
    values, torn = _whole(memory, layout.EVENT, at)
    # 512 events of other threads later, its place in the ring may hold something else.
    if torn or values[2] != layout.COLLECTIVE_BEGINS:
        return None, torn
    return _event(values, texts), 0


def _event(values: tuple[Any, ...], texts: _Texts) -> EventReading:
    number, at_s, kind, flags, name, group, site, sequence, num_bytes, ended_s, _ = values
    slot = None if group == layout.NO_GROUP else group
    kind_name = layout.KIND_NAMES[kind]
    return EventReading(
        number, kind_name, texts[name], at_s, ended_s, flags, slot, texts[site], sequence, num_bytes
    )


def _events(memory: _Memory, texts: _Texts) -> tuple[tuple[EventReading, ...], int]:
    found = []
    num_torn = 0
    for slot in range(layout.NUM_EVENTS):
        values, torn = _whole(memory, layout.EVENT, layout.EVENTS_AT + slot * layout.EVENT.size)
        num_torn += torn
        if not torn and values[0] % layout.NUM_EVENTS == slot and values[2] in layout.KIND_NAMES:
            found.append(_event(values, texts))
    return tuple(sorted(found, key=lambda event: event.number)), num_torn


def _groups(memory: _Memory, texts: _Texts) -> dict[int, GroupReading]:
    groups = {}
    for slot in range(layout.NUM_GROUPS):
        at = layout.GROUPS_AT + slot * layout.GROUP_BYTES
        values = layout.GROUP.unpack_from(memory, at)
        used, name, description, num_ranks, entered, _, timeout_s, length, _ = values
        if not used:
            continue
        start = at + layout.GROUP.size
        data = bytes(memory[start : start + min(length, layout.GROUP_RANKS_BYTES)])
        try:
            ranks = layout.ranks_from(data.decode(errors="replace"))
        except ValueError:
            ranks = ()
        groups[slot] = GroupReading(
            texts[name], texts[description], ranks, num_ranks, entered, timeout_s
        )
    return groups


def _last_store_s(
    events: tuple[EventReading, ...], collective: EventReading | None, phase_began_s: float
) -> float:
    times = [phase_began_s]
    times += [max(event.at_s, event.ended_s) for event in events[-1:]]
    times += [event.ended_s for event in events if event.kind == "phase"]
    times += [max(collective.at_s, collective.ended_s)] if collective else []
    return max(times)
