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
_MARKDOWN = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_AT_LINE_START = re.compile(r"^(\s*)(#{1,6}\s|[-+=]+(?:\s|$)|\d+[.)]\s)")


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
    """One line of prose that no markdown reader takes for markup, link or mention."""
    line = one_line(text, max_chars)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKDOWN.sub(lambda match: "\\" + match.group(), line)
    # An empty comment breaks a mention without changing what is read.
    line = line.replace("@", "@<!-- -->")
    return _AT_LINE_START.sub(lambda match: match.group(1) + "\\" + match.group(2), line)


def markdown_code(text: str, max_chars: int = 300) -> str:
    """One line as a code span of a table, where a bar would end the cell; "" stays ""."""
    return markdown_code_as_is(text.replace("|", "¦"), max_chars)


def markdown_code_as_is(text: str, max_chars: int = 300) -> str:
    """One line as a code span outside of tables, to be copied as it is; "" stays ""."""
    line = one_line(text, max_chars)
    if not line:
        return ""
    fence = "`" * (_longest_run(line, "`") + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def markdown_fence(text: str, info: str = "text") -> str:
    """A fenced block that the text itself cannot close."""
    body = printable(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(body, "`") + 1)
    return f"{fence}{info}\n{body}\n{fence}"


def _longest_run(text: str, character: str) -> int:
    runs = re.findall(re.escape(character) + "+", text)
    return max(map(len, runs), default=0)
