"""The process groups of this process: names, members, counters, time-outs.

Groups are found by identity and held weakly: a strong reference would keep the connections of
a destroyed group alive. torch is asked once a group, at its first collective.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from watchdog.blackbox import layout
from watchdog.blackbox.writing import BlackBox
from watchdog.recording.group_names import GroupNames


class GroupEntry:
    """One process group.

    Attributes:
        slot: Its slot in the black box.
        name: Its name, "" for the default group.
        ranks: Global ranks, ascending.
        timeout_s: Its own time-out (s), 0 where unknown.
        entered: Collectives entered so far.
        in_section: Whether a collective of it was entered inside of a section.
    """

    __slots__ = ("entered", "in_section", "name", "ranks", "slot", "timeout_s")

    def __init__(self, slot: int, name: str, ranks: tuple[int, ...], timeout_s: float) -> None:
        self.slot = slot
        self.name = name
        self.ranks = ranks
        self.timeout_s = timeout_s
        self.entered = 0
        self.in_section = False


class ProcessGroups:
    """Finds the entry of a group; enters it into the black box when it is new.

    Attributes:
        names: What people call the groups.
    """

    def __init__(self, box: BlackBox) -> None:
        self._box = box
        self.names = GroupNames()
        self._entries: dict[int, tuple[Callable[[], object], GroupEntry]] = {}
        self._free_slots = list(range(layout.NUM_GROUPS - 1, -1, -1))

    def entry(self, group: object) -> GroupEntry | None:
        """Return the entry of a group, `None` if it has none.

        Args:
            group: Process group, or `None` for the default group.
        """
        known = self._entries.get(id(group))
        if known is not None and known[0]() is group:
            return known[1]
        try:
            return self._enter(group)
        except Exception:
            # A wrapper that is not reloaded yet, a group of an unknown kind: it stays unnamed.
            return None

    def forget(self) -> None:
        """Drop every group that is gone, and the default group: it may be another one now."""
        live = {id(entry) for key, (ref, entry) in self._entries.items() if self._lives(ref)}
        for key, (ref, entry) in list(self._entries.items()):
            if self._lives(ref):
                continue
            del self._entries[key]
            if id(entry) not in live and entry.slot != layout.NO_GROUP:
                live.add(id(entry))
                self._box.group_gone(entry.slot)
                self._free_slots.append(entry.slot)

    def shortest_timeout_s(self) -> float | None:
        """Shortest time-out of the default group and of those used in sections (s)."""
        entries = [entry for _, entry in list(self._entries.values())]
        timeouts = [
            entry.timeout_s
            for entry in entries
            if entry.timeout_s > 0 and (entry.in_section or not entry.name)
        ]
        return min(timeouts, default=None)

    @staticmethod
    def _lives(ref: Callable[[], object]) -> bool:
        return ref() is not None

    def _enter(self, group: object) -> GroupEntry | None:
        torch_distributed: Any = sys.modules["torch.distributed"]
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        default = c10d._get_default_group()
        actual: Any = default if group is None else group
        if actual is not group or actual is default:
            known = self._entries.get(id(default))
            if known is not None and known[0]() is default:
                self._alias(group, known[1])
                return known[1]
        ranks = tuple(torch_distributed.get_process_group_ranks(actual))
        name = "" if actual is default else str(actual.group_name)
        entry = GroupEntry(self._free_slot(), name, tuple(sorted(ranks)), _timeout_s(actual))
        if entry.slot != layout.NO_GROUP:
            description = self.names.of(actual) if name else ""
            self._box.group(
                entry.slot,
                self._box.text(name),
                self._box.text(description),
                entry.ranks,
                entry.timeout_s,
            )
        self._entries[id(actual)] = (weakref.ref(actual), entry)
        if group is None:
            self._alias(None, entry)
        return entry

    def _alias(self, group: object, entry: GroupEntry) -> None:
        if group is None:
            self._entries[id(None)] = (lambda: None, entry)

    def _free_slot(self) -> int:
        if not self._free_slots:
            self.forget()
        return self._free_slots.pop() if self._free_slots else layout.NO_GROUP


def _timeout_s(group: Any) -> float:
    """Shortest time-out of the group's backends (s), 0 where they do not tell."""
    torch: Any = sys.modules["torch"]
    try:
        backends = [group._get_backend(torch.device(device)) for device in group._device_types]
        return float(min(backend.options._timeout.total_seconds() for backend in backends))
    except (AttributeError, RuntimeError, ValueError):
        return 0.0
