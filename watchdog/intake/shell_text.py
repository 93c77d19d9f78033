"""Shell scripts as far as a launch script needs them: read, never run.

Continuations, comments, quotes, variables, arrays, defaults (`${X:-4}`), several commands in a
line. Command substitution and arithmetic are left as they stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_TOKENS = 20_000
MAX_TOKEN_CHARS = 100_000
# Stands for a `$` that quotes protect, until everything is replaced.
_DOLLAR = "\ue000"

_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<add>\+)?=(?P<value>.*)$", re.DOTALL)
_VARIABLE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*)(?P<array>\[[@*]\])?(?P<default>:?[-=+][^{}]*)?\}"
    r"|(?P<plain>[A-Za-z_]\w*))"
)
_DEFAULT_ASSIGNMENT = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*):?=(?P<value>[^{}]*)\}")
_REDIRECTION = re.compile(r"\d?(?:>>?|<)(?:&\d|[ \t]*[^\s;|&<>]+)|&>>?[ \t]*[^\s;|&<>]+")
_SEPARATORS = (";;", "&&", "||", ";", "|", "&", "\n")


@dataclass(frozen=True)
class Token:
    """One word of a script.

    Attributes:
        text: The word with quotes taken off, variables not yet replaced.
        line: Line it begins in, from 1.
        quoted: Whether a quote was in it: it is not split when replaced.
        separator: Whether it ends a command.
    """

    text: str
    line: int
    quoted: bool = False
    separator: bool = False


@dataclass
class Command:
    """One command after replacement.

    Attributes:
        argv: Words.
        line: Line it begins in, from 1.
        variables: Variables set for it alone, in front of it.
    """

    argv: list[str]
    line: int
    variables: dict[str, str] = field(default_factory=dict)


@dataclass
class Script:
    """All commands of a script, and the variables that it exports."""

    commands: list[Command] = field(default_factory=list)
    exported: dict[str, str] = field(default_factory=dict)
    variables: dict[str, list[str]] = field(default_factory=dict)


def tokens_of(text: str) -> list[Token]:
    """The words of a script, in order.

    Raises:
        ValueError: More words than a script has.
    """
    found: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        char = text[position]
        if text.startswith(("\\\n", "\\\r\n"), position):
            position = text.index("\n", position) + 1
            line += 1
        elif char == "\n":
            found.append(Token("\n", line, separator=True))
            position, line = position + 1, line + 1
        elif char.isspace():
            position += 1
        elif char == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif redirection := _REDIRECTION.match(text, position):
            position = redirection.end()
        elif separator := next((s for s in _SEPARATORS if text.startswith(s, position)), ""):
            found.append(Token(separator, line, separator=True))
            position += len(separator)
        else:
            token, position, line = _word(text, position, line)
            found.append(token)
        if len(found) > MAX_TOKENS:
            raise ValueError(f"more than {MAX_TOKENS} words")
    return found


def _word(text: str, position: int, line: int) -> tuple[Token, int, int]:
    start_line, piece, quoted = line, list[str](), False
    while position < len(text):
        char = text[position]
        if char == "'":
            end = text.find("'", position + 1)
            end = len(text) if end < 0 else end
            inner, quoted = text[position + 1 : end].replace("$", _DOLLAR), True
            position = end + 1
        elif char == '"':
            inner, position = _double_quoted(text, position + 1)
            quoted = True
        elif text.startswith(("\\\n", "\\\r\n"), position):
            break
        elif char == "\\" and position + 1 < len(text):
            inner = text[position + 1].replace("$", _DOLLAR)
            position += 2
        elif char.isspace() or char in ";|&":
            break
        elif char == "(" and piece and piece[-1].endswith("$"):
            end = _closing(text, position)
            inner = text[position:end]
            position = end
        else:
            inner = char
            position += 1
        line += inner.count("\n")
        piece.append(inner)
    return Token("".join(piece)[:MAX_TOKEN_CHARS], start_line, quoted), position, line


def _double_quoted(text: str, position: int) -> tuple[str, int]:
    piece: list[str] = []
    while position < len(text) and text[position] != '"':
        if text[position] == "\\" and position + 1 < len(text):
            if text[position + 1] in '"\\$`':
                piece.append(text[position + 1].replace("$", _DOLLAR))
            elif text[position + 1] != "\n":
                piece.append(text[position : position + 2])
            position += 2
        else:
            piece.append(text[position])
            position += 1
    return "".join(piece), position + 1


def _closing(text: str, position: int) -> int:
    depth = 0
    for index in range(position, min(len(text), position + 5_000)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return position + 1


def read_script(text: str) -> Script:
    """All commands with variables replaced, in order."""
    script = Script()
    words: list[Token] = []
    array: tuple[str, list[Token]] | None = None
    for token in [*tokens_of(text), Token("\n", 0, separator=True)]:
        if array is not None:
            name, items = array
            if not token.separator and token.text.endswith(")") and not token.quoted:
                items.append(Token(token.text[:-1], token.line))
                script.variables[name] = _expanded(items, script)
                array = None
            elif not token.separator:
                items.append(token)
            continue
        opened = (
            None if token.separator or token.quoted else re.match(r"(\w+)\+?=\((.*)$", token.text)
        )
        if opened and not words:
            rest = opened[2]
            if rest.endswith(")"):
                script.variables[opened[1]] = _expanded([Token(rest[:-1], token.line)], script)
            else:
                array = (opened[1], [Token(rest, token.line)] if rest else [])
        elif token.separator:
            _finish(words, script)
            words = []
        else:
            words.append(token)
    return script


def _finish(words: list[Token], script: Script) -> None:
    for token in words:
        for default in _DEFAULT_ASSIGNMENT.finditer(token.text):
            script.variables.setdefault(default["name"], [default["value"]])
    assignments: list[tuple[str, list[str]]] = []
    exporting = False
    position = 0
    for position, token in enumerate(words):  # noqa: B007 - read after the loop
        match = _NAME.match(token.text)
        if (
            token.text in ("export", "env", "declare", "local", "readonly", "-x")
            and not token.quoted
        ):
            exporting = exporting or token.text == "export"
        elif match and not token.text.startswith(("-", "$")):
            value = _replaced(match["value"], script)
            if match["add"]:
                value = " ".join(script.variables.get(match["name"], [])) + value
            assignments.append((match["name"], [value]))
        else:
            break
    else:
        position = len(words)
    if position == len(words):
        script.variables.update(assignments)
        if exporting:
            script.exported.update((name, value[0]) for name, value in assignments)
        return
    argv = _expanded(words[position:], script)
    if argv:
        own = {name: value[0] for name, value in assignments}
        script.commands.append(Command(argv, words[position].line, own))


def _expanded(tokens: list[Token], script: Script) -> list[str]:
    argv: list[str] = []
    for token in tokens:
        if "$" not in token.text:
            if token.text or token.quoted:
                argv.append(token.text.replace(_DOLLAR, "$"))
            continue
        whole = _VARIABLE.fullmatch(token.text)
        if whole and whole["array"]:
            argv += script.variables.get(whole["braced"] or "", [])
            continue
        text = _replaced(token.text, script)
        argv += [text] if token.quoted else text.split()
        if len(argv) > MAX_TOKENS:
            raise ValueError(f"more than {MAX_TOKENS} words")
    return argv


def _replaced(text: str, script: Script) -> str:
    # Once: what a variable holds was replaced when it was set.
    replaced = _VARIABLE.sub(lambda match: _value(match, script), text)
    return replaced[:MAX_TOKEN_CHARS].replace(_DOLLAR, "$")


def _value(match: re.Match[str], script: Script) -> str:
    values = script.variables.get(match["braced"] or match["plain"])
    if values is not None:
        return " ".join(values)
    default = match["default"]
    return default.lstrip(":")[1:] if default and default.lstrip(":")[0] in "-=" else match[0]
