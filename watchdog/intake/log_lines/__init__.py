"""Known log lines, one module a family: what each means, and what it does not say.

Every entry has a kind (the slug of a `LogEvent`), strings of which at least one stands in every
line that can match (a big log is searched for these alone), a pattern whose named groups become
the event's fields, and fields that are constant.

Kinds that many rules build on, whatever framework wrote the line:

`engine_control`
    A call that steers an engine. Fields: `op` (`pause`, `resume`, `flush`, `sleep`, `wake`,
    `start_update`, `update`, `finish_update`, `init_group`, `destroy_group`, `load_lora`,
    `unload_lora`, `abort`), `stage` (`begin`, `end`, `error`, `retry`), and where known `status`
    (HTTP), `level`, `running`, `queued`, `name`.
`progress`
    A counter that counts: `name`, `done`, `total`.
`engine_load`
    An engine's own statistics: `running`, `queued`, `tokens`, `throughput`.
`http_access`
    An access line that is no control call: `method`, `path`, `status`.
`trainer_phase`
    A named step of a trainer: `name`, `stage` (`begin`, `end`, `error`), `elapsed_s`.
`error`
    A line with level ERROR or an exception's name that no family knows.
`last_line`
    The last line of a stream, whatever it says.

Repeated events are folded: the first few and the last few are kept, and the last one's field
`count` says how many there were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MAX_FIELD_CHARS = 500


@dataclass(frozen=True)
class LineKind:
    """One known line.

    Attributes:
        kind: Slug of the event.
        literals: At least one of them stands in every line that the pattern matches.
        pattern: Searched in the message; its named groups become fields.
        fields: Fields that are the same for every such line.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    fields: Mapping[str, str] = field(default_factory=dict)


def line_kind(kind: str, literal: str | tuple[str, ...], pattern: str, **fields: str) -> LineKind:
    """Shorthand for the tables: one literal or several, a pattern, constant fields."""
    literals = (literal,) if isinstance(literal, str) else literal
    return LineKind(kind, literals, re.compile(pattern), fields)


class LineTable:
    """Known lines, found by their literals first.

    Args:
        entries: All of them, in order of precedence.
    """

    def __init__(self, entries: Sequence[LineKind]) -> None:
        by_literal: dict[str, list[int]] = {}
        for index, entry in enumerate(entries):
            for literal in entry.literals:
                by_literal.setdefault(literal, []).append(index)
        self._entries = tuple(entries)
        self._literals = tuple(by_literal.items())

    def events(self, text: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Kind and fields of everything that one message means; nothing for an unknown line.

        Of several entries of one kind the first wins, and an access line that is a control call
        is not an `http_access` as well.
        """
        found = [indices for literal, indices in self._literals if literal in text]
        seen: set[str] = set()
        for index in sorted({index for indices in found for index in indices}):
            entry = self._entries[index]
            if entry.kind in seen or (entry.kind == "http_access" and "engine_control" in seen):
                continue
            match = entry.pattern.search(text)
            if match:
                seen.add(entry.kind)
                groups = match.groupdict().items()
                fields = {name: value[:MAX_FIELD_CHARS] for name, value in groups if value}
                yield entry.kind, {**entry.fields, **fields}
