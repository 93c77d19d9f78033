"""Where everything lies in a black box: one file of fixed size, little endian.

Writer and readers share this table and nothing else. A record carries its version at both
ends, and both are written by one call in ascending order: unequal ends are a torn write. Texts
are written once into a table and referred to by number; number 0 is the empty text.
"""

from __future__ import annotations

import struct
from itertools import pairwise

MAGIC = b"MWDGBOX\0"
VERSION = 1

# magic, version, size of the file (bytes), monotonic (s) and wall clock (s) of one moment.
HEADER = struct.Struct("<8sIIdd")
HEADER_AT = 0

# length of a JSON text, then the text.
IDENTITY_LENGTH = struct.Struct("<I")
IDENTITY_AT = 64
IDENTITY_BYTES = 4096 - IDENTITY_AT

# version, section, phase, index, section began (s), phase began (s), deadline (s), tid, version.
SECTION = struct.Struct("<QIIQdddQQ")
SECTION_AT = 4096

# Place in the file of the event that describes the current or last collective, 0 = none yet.
CURRENT = struct.Struct("<Q")
CURRENT_AT = SECTION_AT + SECTION.size

# heartbeat of the watchdog thread (s); state of the process; stalls so far; sections so far.
HEARTBEAT = struct.Struct("<d")
HEARTBEAT_AT = CURRENT_AT + CURRENT.size
STATE = struct.Struct("<I")
STATE_AT = HEARTBEAT_AT + 8
COUNTERS = struct.Struct("<QQ")
COUNTERS_AT = STATE_AT + 8

# used, name, description, number of ranks, entered, unused, time-out (s), length, unused;
# then the ranks as text, e.g. `0-7` or `0,8,16`.
GROUP = struct.Struct("<IIIIQQdII")
GROUP_ENTERED_AT = 16
GROUP_BYTES = 512
GROUP_RANKS_BYTES = GROUP_BYTES - GROUP.size
NUM_GROUPS = 128
GROUPS_AT = 8192
COUNT = struct.Struct("<Q")

# length, then the text.
TEXT_LENGTH = struct.Struct("<H")
TEXT_BYTES = 192
NUM_TEXTS = 1024
TEXTS_AT = GROUPS_AT + NUM_GROUPS * GROUP_BYTES

# version, time (s), kind, flags, name, group slot, call site, sequence, bytes, ended (s), version.
# Of a phase, the sequence is how often it was marked, and `ended` the last of these times.
EVENT = struct.Struct("<QdHHIIIQQdQ")
EVENT_ENDED = struct.Struct("<d")
EVENT_ENDED_AT = EVENT.size - 16
EVENT_TIME_AT = 8
EVENT_SEQUENCE_AT = 32
EVENT_FLAGS = struct.Struct("<H")
EVENT_FLAGS_AT = 18
NUM_EVENTS = 512
EVENTS_AT = TEXTS_AT + NUM_TEXTS * TEXT_BYTES
# One more, outside of the ring: the last collective outside of any section.
OUTSIDE_AT = EVENTS_AT + NUM_EVENTS * EVENT.size

SIZE = OUTSIDE_AT + EVENT.size

# A group slot that says: none.
NO_GROUP = 0xFFFFFFFF

# Kinds of events, and their names in the evidence.
SECTION_BEGINS, PHASE_BEGINS, COLLECTIVE_BEGINS, SECTION_ENDS, NOTE = range(1, 6)
KIND_NAMES = {
    SECTION_BEGINS: "section",
    PHASE_BEGINS: "phase",
    COLLECTIVE_BEGINS: "collective",
    SECTION_ENDS: "section_end",
    NOTE: "note",
}

# Flags of a collective and of a section's end.
ASYNC, RAISED, BEFORE_SECTION = 1, 2, 4

# States of the process.
RUNNING, EXITED = 0, 1


def ranks_text(ranks: tuple[int, ...]) -> str:
    """Write ascending ranks short: `0-7`, `0-56/8` (every eighth), `0,3,4`; cut at 464 bytes."""
    if not ranks:
        return ""
    steps = {later - earlier for earlier, later in pairwise(ranks)}
    if len(ranks) > 2 and len(steps) == 1:
        step = steps.pop()
        return f"{ranks[0]}-{ranks[-1]}" + ("" if step == 1 else f"/{step}")
    text = ",".join(map(str, ranks))
    return text if len(text) <= GROUP_RANKS_BYTES else text[:GROUP_RANKS_BYTES].rpartition(",")[0]


def ranks_from(text: str) -> tuple[int, ...]:
    """Read what `ranks_text` wrote. Raises `ValueError` for anything else."""
    if "-" in text:
        bounds, _, step = text.partition("/")
        first, _, last = bounds.partition("-")
        return tuple(range(int(first), int(last) + 1, int(step or 1)))
    return tuple(int(rank) for rank in text.split(",")) if text else ()
