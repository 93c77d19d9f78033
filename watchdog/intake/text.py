"""Bytes to clean lines: encodings, colours, progress bars, lines without end."""

from __future__ import annotations

import codecs
import re

MAX_LINE_CHARS = 20_000
_SAMPLE_CHARS = 2_000

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PREFIX_END = re.compile(r"(?:\)|\]:?|stdout [FP]|stderr [FP]) ?$")
_REPEATED_PREFIX = re.compile(r"\([^()]{1,120} pid=\d+[^()]{0,80}\) ?$")
_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def encoding_of(head: bytes) -> tuple[str, int]:
    """Encoding of a text by its first bytes, and the length of its byte-order mark.

    UTF-16 without a mark is told by its zero bytes; everything else is read as UTF-8, where
    wrong bytes become U+FFFD.
    """
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name, len(mark)
    sample = head[:512]
    if len(sample) >= 8:
        if sample[1::2].count(0) * 10 >= len(sample[1::2]) * 8:
            return "utf-16-le", 0
        if sample[0::2].count(0) * 10 >= len(sample[0::2]) * 8:
            return "utf-16-be", 0
    return "utf-8", 0


def looks_binary(head: bytes) -> bool:
    """Whether these are no text at all: many control bytes, and no encoding explains them."""
    if encoding_of(head)[0] != "utf-8":
        return False
    sample = head[:4096]
    odd = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in sample)
    return bool(sample) and odd * 10 > len(sample)


def clean_line(line: str) -> str:
    """One line as a terminal shows it in the end.

    Colours go, of a progress bar's rewrites (carriage returns) the last one that is not empty
    stays, tabs stay, other control characters go. What is longer than `MAX_LINE_CHARS`, or ends
    in one thing over and over, is cut in the middle.
    """
    if "\r" in line:
        line = _last_state(line)
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if len(line) > 2 * _SAMPLE_CHARS and _repeats_itself(line[-_SAMPLE_CHARS:]):
        line = f"{line[:_SAMPLE_CHARS]} … {line[-100:]}"
    if len(line) > MAX_LINE_CHARS:
        half = MAX_LINE_CHARS // 2
        line = f"{line[:half]} … {line[-half:]}"
    return _CONTROL.sub("", line)


def _repeats_itself(text: str) -> bool:
    """Whether it is one short thing over and over: no parser needs more than some of it."""
    period = text.find(text[:64], 1)
    return 0 < period < len(text) // 2 and text[period:] == text[:-period]


def _last_state(line: str) -> str:
    # A launcher's prefix stands before the first carriage return and is not repeated after it;
    # Ray repeats it at the end of each state.
    first = line.split("\r", 1)[0]
    is_prefix = _PREFIX_END.search(first[-80:]) and len(first) < 240 and "%|" not in first
    prefix = first if is_prefix else ""
    states = [state for state in line.rsplit("\r", 8) if state.strip()]
    if not states:
        return ""
    last = states[-1]
    again = _REPEATED_PREFIX.search(last)
    if again and again.start() > 0:
        last = last[: again.start()]
    return last if last.startswith(prefix) else f"{prefix}{last}"


def decode(data: bytes) -> str:
    """Whole text of a small file, whatever its encoding; never fails."""
    encoding, skip = encoding_of(data)
    return data[skip:].decode(encoding, "replace")
