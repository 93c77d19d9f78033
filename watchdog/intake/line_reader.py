"""Reads text line by line: takes prefixes off, collects blocks, recognises known lines.

Several processes may write into one file at once, so every stream (lines with the same prefix)
has its own open block: a traceback of one rank stays whole although others write between its
lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from watchdog.intake.bars import BarClocks, last_states
from watchdog.intake.blocks import MAX_BLOCK_LINES, Block, BlockKind, Context
from watchdog.intake.log_lines.table import KNOWN_LINES, LITERALS
from watchdog.intake.log_store import FoldedEvents
from watchdog.intake.markers import MARKER_LITERALS, Marker, read_marker
from watchdog.intake.parts import NOBODY, Parts, ProcessPart, RawEvent, Who
from watchdog.intake.prefixes import Line, PrefixReader
from watchdog.intake.text import clean_line
from watchdog.intake.times import Moment, find_moment
from watchdog.masking import mask_text

MAX_OPEN_BLOCKS = 256
MAX_STREAMS = 512
MAX_SILENT_LINES = 2_000
MAX_TEXT_CHARS = 2_000
_LIBRARY = re.compile(r"/\S*libnccl[\w.\-]*")
_EXCEPTION = re.compile(r"(?:^|[\s.(])[A-Za-z_]\w*(?:Error|Exception): ")
_CLUSTER = ("raylet", "autoscaler", "gcs_server")
_ERROR_LEVELS = ("ERROR", "CRITICAL", "FATAL")
REMARKS = frozenset(("remark_duration", "observed_at", "gpu_spinning"))
ERROR_LITERALS = (*_ERROR_LEVELS, "Error: ", "Exception: ")


def search_literals(blocks: Sequence[BlockKind]) -> tuple[str, ...]:
    """Strings to search a big log for: of known lines, errors, headings of dumps, blocks."""
    literals = [*LITERALS, *ERROR_LITERALS, *MARKER_LITERALS]
    for kind in blocks:
        literals += kind.LINE_LITERALS
    return tuple(dict.fromkeys(literals))


class LineReader:
    """Feeds the lines of one file to the parsers of blocks and log lines.

    Args:
        context: What the file's name says.
        blocks: Kinds of blocks, in order of precedence.
        parts: Where everything goes.
        slurm: Whether srun labelled the lines.
    """

    def __init__(
        self, context: Context, blocks: Sequence[BlockKind], parts: Parts, slurm: bool = False
    ) -> None:
        self._context = context
        self._base = context
        self._blocks = blocks
        self._parts = parts
        self._prefixes = PrefixReader(slurm)
        self._events = FoldedEvents()
        self._open: dict[str, tuple[BlockKind, Block, int]] = {}
        self._last: dict[str, tuple[int, Line]] = {}
        self._bars = BarClocks()
        self._moment: Moment | None = None
        self._first_moment: tuple[int, Moment] | None = None

    @property
    def inside_block(self) -> bool:
        """Whether a block is open, so that the next line matters whatever it holds."""
        return bool(self._open)

    def feed(self, number: int, raw: str, known: bool = True) -> None:
        """Take the next line.

        Args:
            number: Its number, from 1; may leap.
            raw: As it stands in the file, without the line's end.
            known: Whether it may hold something known; otherwise it only is the last so far.
        """
        line = self._prefixes.read(clean_line(raw))
        if self._open:
            if self._continued(number, line):
                return
            self._close_silent(number)
        if not line.text.strip():
            return
        if not known:
            self._remember(number, line)
            return
        marker = read_marker(line.text)
        if marker is not None:
            self._follow(_timed(marker, line), number)
        elif self._opened(number, line):
            return
        else:
            self._remember(number, line)
        for state in last_states(raw):
            self._bar(number, self._prefixes.read(clean_line(state)))
        self._known_lines(number, line, is_marker=marker is not None)

    def close(self) -> None:
        """Take the end of the file: open blocks are read as they are, events handed over."""
        for stream in list(self._open):
            self._close_block(stream)
        for number, line in self._last.values():
            if line.who.actor in _CLUSTER:
                continue  # its state is printed whatever the job does
            self._parts.add_event(self._event("last_line", number, line, {}))
        self._events.deliver(self._parts, self._first_moment)

    def _continued(self, number: int, line: Line) -> bool:
        stream = self._stream_of(number, line)
        if stream is None:
            return False
        kind, block, _ = self._open[stream]
        if len(block.lines) < MAX_BLOCK_LINES and kind.continues(line.text, block):
            block.lines.append(line.text)
            self._open[stream] = (kind, block, number)
            return True
        self._close_block(stream)
        return False

    def _stream_of(self, number: int, line: Line) -> str | None:
        """The open block that a line may continue.

        A logger writes its prefix before the first line of a message alone: what follows at once
        without any belongs to it.
        """
        if line.source in self._open:
            return line.source
        if line.source or line.who is not NOBODY or line.moment or line.level:
            return None
        for stream, (_, _, last) in self._open.items():
            if last == number - 1:
                return stream
        return None

    def _close_silent(self, number: int) -> None:
        for stream, (_, _, last) in list(self._open.items()):
            if number - last > MAX_SILENT_LINES:
                self._close_block(stream)

    def _close_block(self, stream: str) -> None:
        kind, block, _ = self._open.pop(stream)
        try:
            kind.parse(block, self._parts)
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            self._parts.add_gap(
                what=f"{self._base.file} from line {block.number}",
                why=f"could not be read ({type(error).__name__}: {error})"[:300],
            )

    def _opened(self, number: int, line: Line) -> bool:
        for kind in self._blocks:
            if kind.opens(line.text):
                if len(self._open) >= MAX_OPEN_BLOCKS:
                    self._close_block(next(iter(self._open)))
                context = replace(self._context, order=self._base.order + number * 1e-9)
                block = Block(line, number, context, [line.text])
                self._open[line.source] = (kind, block, number)
                return True
        return False

    def _follow(self, marker: Marker, number: int) -> None:
        who = marker.who if marker.resets or marker.who is not NOBODY else self._context.who
        moment = marker.moment or self._context.moment
        # A date that a command prints stands between the command and the rest of its output.
        is_date = marker.who is NOBODY and not marker.resets and not marker.title
        title = self._context.title if is_date else marker.title
        self._context = replace(self._context, who=who, moment=moment, title=title)
        if marker.moment and (self._moment is None or not marker.title):
            self._parts.add_event(
                RawEvent("observed_at", marker.title, self._base.file, number, marker.moment)
            )
        if marker.gap:
            self._parts.add_process(
                ProcessPart(
                    who=who,
                    file_who=self._base.file_who,
                    file=self._base.file,
                    moment=moment,
                    gap=marker.gap,
                )
            )

    def _remember(self, number: int, line: Line) -> None:
        if line.source in self._last or len(self._last) < MAX_STREAMS:
            self._last[line.source] = (number, line)
        if line.moment:
            self._moment = line.moment
            if self._first_moment is None:
                self._first_moment = (number, line.moment)

    def _known_lines(self, number: int, line: Line, is_marker: bool = False) -> None:
        found = False
        for kind, fields in KNOWN_LINES.events(line.text):
            if kind in REMARKS and line.moment is not None:
                continue
            found = True
            if kind == "nccl_version" and (library := _LIBRARY.search(self._context.title)):
                fields["library"] = library[0]
            self._events.add(self._event(kind, number, line, fields), line.repeated)
        if not found and not is_marker and _is_error(line):
            self._events.add(self._event("error", number, line, _error_fields(line)), line.repeated)

    def _bar(self, number: int, line: Line) -> None:
        """An earlier state of a bar that rewrote its line: that it counted, nothing else."""
        for kind, fields in KNOWN_LINES.events(line.text):
            if kind == "progress" and fields.get("form") == "bar":
                self._events.add(self._event(kind, number, line, fields))

    def _event(self, kind: str, number: int, line: Line, fields: dict[str, str]) -> RawEvent:
        moment = line.moment
        if kind == "observed_at":
            at = find_moment(fields.get("at", ""))
            moment = at[0] if at else None
        elif moment is None and fields.get("form") == "bar":
            moment = self._bars.moment(fields.get("name", ""), fields["elapsed"], self._moment)
        elif moment is None and self._moment is not None:
            moment = self._moment
            fields = {**fields, "time_of": "the line before"}
        elif moment is None and self._context.moment is not None:
            fields = {**fields, "time_of": "the heading"}
        return RawEvent(
            kind=kind,
            text=mask_text(line.text[:MAX_TEXT_CHARS])[:MAX_TEXT_CHARS],
            file=self._base.file,
            line=number,
            moment=moment or self._context.moment,
            who=whose_line(line.who, self._base.file_who),
            fields=fields,
        )


def _timed(marker: Marker, line: Line) -> Marker:
    """The marker, with the time that stands before a shell's prompt."""
    return replace(marker, moment=line.moment) if marker.moment is None else marker


def whose_line(who: Who, file_who: Who) -> Who:
    """Whose a log line is, by its prefix first and the name of the file second.

    An engine's file covers all that the engine's processes write, and a rank in a prefix there
    is a rank inside the engine. A trainer's file says nothing of lines with a pid of their own:
    rank 0's log often is the log of everybody.
    """
    if file_who.role == "engine" and file_who.rank is None:
        if who.role in (None, "engine", "engine_worker"):
            if who.rank is not None:
                who = replace(who, worker=who.rank, rank=None, role="engine_worker")
            return who.or_else(replace(file_who, pid=None))
        return who
    if who.pid is not None or who.actor or who.rank is not None:
        return who
    return who.or_else(replace(file_who, pid=None))


def _is_error(line: Line) -> bool:
    if line.level in _ERROR_LEVELS:
        return True
    text = line.text[:400]
    return _EXCEPTION.search(text) is not None


def _error_fields(line: Line) -> dict[str, str]:
    name, colon, _ = line.text.partition(": ")
    simple = name.rsplit(".", 1)[-1]
    if colon and simple.isidentifier() and simple.endswith(("Error", "Exception")):
        return {"exception": simple}
    return {}
