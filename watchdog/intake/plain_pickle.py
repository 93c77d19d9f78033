"""Pickles of plain data, read without the unpickler: an interpreter of the harmless opcodes.

`pickle.Unpickler` runs what a pickle names, and even with every name refused it can be made to
allocate without bound (memo indices) or to hash for hours (keys that collide). This reads
numbers, texts, bytes, lists, tuples, dicts and sets, and refuses the rest.

Source:
    CPython's `pickletools`, whose `genops` takes a pickle apart without executing it.
"""

from __future__ import annotations

import pickletools
from typing import Any

MAX_BYTES = 32 * 2**20
MAX_OPCODES = 8_000_000

_MARK = object()
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_IGNORED = frozenset(["PROTO", "FRAME"])
_VALUES = frozenset(
    [
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "FLOAT",
        "BINFLOAT",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
    ]
)
_EMPTY: dict[str, type[Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": list,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class PickleRefusedError(ValueError):
    """The pickle holds something else than plain data, or is broken."""


def plain_pickle(data: bytes) -> Any:
    """The value of a pickle that holds containers and scalars only; sets come as lists.

    Raises:
        PickleRefusedError: Anything else is in it; the message names the opcode and what it
            would have done. Nothing was executed.
    """
    if len(data) > MAX_BYTES:
        raise PickleRefusedError(f"a pickle of {len(data)} bytes; at most {MAX_BYTES} are read")
    machine = _Machine()
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if number > MAX_OPCODES:
                raise PickleRefusedError(f"more than {MAX_OPCODES} opcodes")
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    except PickleRefusedError:
        raise
    except Exception as error:  # genops raises what its many readers raise
        raise PickleRefusedError(f"broken pickle: {error}"[:200]) from error
    raise PickleRefusedError("broken pickle: it does not end")


class _Machine:
    """The stack and memo of one pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        """Take the topmost value."""
        if not self._stack or self._stack[-1] is _MARK:
            raise PickleRefusedError("broken pickle: the stack is empty")
        return self._stack.pop()

    def step(self, name: str, argument: Any) -> None:
        """Execute one opcode."""
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name == "EMPTY_TUPLE":
            self._stack.append(())
        elif name in _IGNORED:
            return
        elif name == "MARK":
            self._stack.append(_MARK)
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            index = len(self._memo) if name == "MEMOIZE" else int(argument)
            self._memo[index] = self._stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self._stack.append(self._memo[int(argument)])
        else:
            self._collect(name)

    def _collect(self, name: str) -> None:
        if name in _TUPLES:
            items = [self.pop() for _ in range(_TUPLES[name])]
            self._stack.append(tuple(reversed(items)))
        elif name == "APPEND":
            item = self.pop()
            self._top(list).append(item)
        elif name == "SETITEM":
            value, key = self.pop(), self.pop()
            self._set(key, value)
        elif name == "POP":
            self._stack.pop()
        elif name == "DUP":
            self._stack.append(self._stack[-1])
        else:
            self._collect_marked(name)

    def _collect_marked(self, name: str) -> None:
        if name not in (
            "APPENDS",
            "ADDITEMS",
            "SETITEMS",
            "TUPLE",
            "LIST",
            "DICT",
            "FROZENSET",
            "POP_MARK",
        ):
            raise PickleRefusedError(f"refused: opcode {name} could run code; nothing was executed")
        items: list[Any] = []
        while True:
            if not self._stack:
                raise PickleRefusedError("broken pickle: no mark")
            item = self._stack.pop()
            if item is _MARK:
                break
            items.append(item)
        items.reverse()
        if name in ("APPENDS", "ADDITEMS"):
            self._top(list).extend(items)
        elif name in ("SETITEMS", "DICT"):
            if name == "DICT":
                self._stack.append({})
            for key, value in zip(items[::2], items[1::2], strict=False):
                self._set(key, value)
        elif name == "TUPLE":
            self._stack.append(tuple(items))
        elif name != "POP_MARK":
            self._stack.append(items)

    def _top(self, kind: type[Any]) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise PickleRefusedError("broken pickle: items without a container")
        return self._stack[-1]

    def _set(self, key: Any, value: Any) -> None:
        # Long integers and tuples can be made to collide; texts cannot.
        collides = isinstance(key, int) and abs(key) >= 2**60
        if collides or not isinstance(key, (str, int, bytes)):
            raise PickleRefusedError("refused: a dictionary's key is neither text nor a number")
        self._top(dict)[key] = value
