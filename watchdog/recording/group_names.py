"""What people call a process group: torch's own names are numbers.

In this order: the description that its maker gave to torch; the variable or attribute that it
is kept in; the function that made it. Nothing of the program is touched for that: the name of
the variable stands in the code object, right behind the call of `new_group`.
"""

from __future__ import annotations

import dis
import weakref
from types import CodeType, FrameType
from typing import Any

_MAX_KNOWN = 4096
# What torch says where nobody gave a description.
_NOT_GIVEN = ("", "undefined", "default_pg")
_SAYS_NOTHING = frozenset(
    {"group", "new_group", "pg", "process_group", "g", "result", "res", "ret", "grp", "handle"}
)


class GroupNames:
    """Keeps where groups were made, as long as they live."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[weakref.ref[Any], str]] = {}
        # The code object in the value keeps its id from being used again.
        self._known: dict[tuple[int, int], tuple[str, CodeType]] = {}

    def made(self, group: object, frame: FrameType) -> None:
        """Keep what a new group is called where it was made.

        Args:
            group: What `new_group` returned; for a rank that is no member it is no group.
            frame: The frame that called `new_group`.
        """
        try:
            reference = weakref.ref(group)
        except TypeError:
            return
        if len(self._made) >= _MAX_KNOWN:
            self._made = {key: one for key, one in self._made.items() if one[0]() is not None}
        self._made[id(group)] = (reference, self._name_at(frame))

    def of(self, group: Any) -> str:
        """Its name for people, "" where nobody gave it one."""
        given = str(getattr(group, "group_desc", "") or "")
        if given not in _NOT_GIVEN:
            return given
        reference, name = self._made.get(id(group), (None, ""))
        return name if reference is not None and reference() is group else ""

    def _name_at(self, frame: FrameType) -> str:
        key = (id(frame.f_code), frame.f_lasti)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = (_name_at(frame), frame.f_code)
        return known[0]


def _name_at(frame: FrameType) -> str:
    # A framework's own `new_group` around torch's: its caller knows what the group is for.
    if frame.f_code.co_name == "new_group" and frame.f_back is not None:
        frame = frame.f_back
    name = _variable_behind(frame.f_code, frame.f_lasti).strip("_").lower()
    if name and name not in _SAYS_NOTHING:
        return name
    return f"group made in {frame.f_code.co_name}"


def _variable_behind(code: CodeType, call_at: int) -> str:
    """The variable or attribute that the result of a call is stored in, "" if it is none."""
    behind = [one for one in dis.get_instructions(code) if one.offset > call_at][:2]
    if not behind:
        return ""
    first, last = behind[0], behind[-1]
    if first.opname.startswith("LOAD_") and last.opname == "STORE_ATTR":
        return str(last.argval)
    if not first.opname.startswith("STORE_") or first.opname in ("STORE_SUBSCR", "STORE_SLICE"):
        return ""
    # Since Python 3.13 one instruction may store and go on to load: its first name is ours.
    return str(first.argval[0] if isinstance(first.argval, tuple) else first.argval)
