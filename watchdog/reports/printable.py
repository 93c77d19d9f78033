"""Text from logs, stacks and command lines, made harmless for whatever shows it.

Everything that a report quotes was written by somebody else: a log line can hold terminal
escapes, a function name a backtick, a command line a mention of a person.
"""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, line and paragraph separators, bidirectional overrides and
# isolates, zero-width marks, lone surrogates: all that moves a cursor, hides text or cannot
# be encoded. Tab and line feed are kept here and dealt with by the callers.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# What markdown, or the tracker that renders it, would take for something: escapes, code, emphasis,
# links, strikethrough, formulas, mentions, references to issues, tags, entities.
_MARKUP = re.compile(
    r"[\\`*\[\]~$@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#\d|<[A-Za-z/!?]|&[A-Za-z0-9#]+;"
)
_AT_LINE_START = re.compile(r"#{1,6}|[-+=>|].*|\d+[.)]|:?-+:?")
_BRACKETED = re.compile(r"""(?P<before>[("']*)(?P<inner>.+?)(?P<after>[)"'.,:!?]*)""")


def printable(text: str) -> str:
    r"""The text with every unsafe character written as an escape, `\x1b` for ESC."""
    return _UNSAFE.sub(lambda match: _escape(match.group()), text.replace("\r\n", "\n"))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, max_chars: int = 400) -> str:
    """Printable, on one line, at most `max_chars` characters; a cut is shown as `…`."""
    line = " ".join(printable(text[: 4 * max_chars + 200]).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def markdown_text(text: str, max_chars: int = 400) -> str:
    """One line of prose that no markdown reader takes for markup, link or mention.

    Nothing is escaped, so that it reads the same unrendered: words that would be taken for more
    than words become code spans, and so does what stands between backticks already.
    """
    line = one_line(text, max_chars)
    quoted = line.split("`")
    if len(quoted) % 2 == 0:  # cut inside of a quotation, or none of ours
        return _spaced(_plain(line, is_first=True))
    pieces: list[str] = []
    for index, part in enumerate(quoted):
        pieces += [markdown_code(part, max_chars)] if index % 2 else _plain(part, index == 0)
    return _spaced(pieces)


def _plain(text: str, is_first: bool) -> list[str]:
    """Words and the gaps between them, in order; words in a row that need it in one code span."""
    pieces: list[str] = []
    marked: list[str] = []
    for index, word in enumerate(re.findall(r"\s+|\S+", text)):
        opens_block = is_first and index == 0 and _AT_LINE_START.fullmatch(word)
        is_gap = word.isspace() and marked and marked[-1][-1] not in ",;:.)"
        if opens_block or is_gap or _MARKUP.search(word):
            marked.append(word)
        else:
            pieces += [*_code_of(marked), word]
            marked = []
    return [*pieces, *_code_of(marked)]


def _code_of(words: list[str]) -> list[str]:
    """A code span without the brackets and stops around it, and the blanks behind it."""
    text = "".join(words)
    if not text:
        return []
    code = text.rstrip()
    before, after, behind = "", "", text[len(code) :]
    found = _BRACKETED.fullmatch(code)
    if found and found["inner"].count("(") == found["inner"].count(")"):
        before, code, after = found["before"], found["inner"], found["after"]
    return [before, markdown_code(code, len(code)), after, behind]


def _spaced(pieces: list[str]) -> str:
    """The pieces in a row; of two code spans that touch, the fences would run together."""
    line = ""
    for piece in pieces:
        gap = " " if line.endswith("`") and piece.startswith("`") else ""
        line += gap + piece
    return line.strip()


def markdown_code(text: str, max_chars: int = 300) -> str:
    """One line as a code span, to be copied as it is; "" stays ""."""
    line = one_line(text, max_chars)
    if not line:
        return ""
    fence = "`" * (_longest_run(line, "`") + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def without_bars(text: str) -> str:
    """The text for a cell of a table, which a bar would end, also in a code span."""
    return text.replace("|", "¦")


def html_text(text: str, max_chars: int = 400) -> str:
    """One line inside of a tag, where markdown is not read: only HTML is kept from being it."""
    line = one_line(text, max_chars).replace("&", "&amp;").replace("<", "&lt;")
    # An empty comment breaks a mention without changing what is read.
    return line.replace("@", "@<!-- -->")


def markdown_fence(text: str, info: str = "text") -> str:
    """A fenced block that the text itself cannot close."""
    body = printable(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(body, "`") + 1)
    return f"{fence}{info}\n{body}\n{fence}"


def _longest_run(text: str, character: str) -> int:
    runs = re.findall(re.escape(character) + "+", text)
    return max(map(len, runs), default=0)
