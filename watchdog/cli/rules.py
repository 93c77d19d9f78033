"""`miles-watchdog rules`: the known causes and their documentation."""

from __future__ import annotations

import difflib
import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from watchdog.errors import WatchdogError

if TYPE_CHECKING:
    from watchdog.rules import Rule


class UnknownRuleError(WatchdogError):
    """No rule has this name. The message says which names are near."""

    help_text = "`miles-watchdog rules` lists all of them."
    exit_code = 2


@click.command("rules")
@click.argument("name", required=False)
@click.option("--markdown", is_flag=True, help="The table of causes as docs/causes.md has it.")
def command(name: str | None, markdown: bool) -> None:
    """List the known causes, or explain one.

    NAME is a rule's name as reports show it, e.g. `missing-rank`; an underscore does as well.
    Of a class, e.g. `missing_backup`, the rules are listed.
    """
    from watchdog.rules import RULES
    from watchdog.rules.documentation import rule_name

    if markdown:
        click.echo(causes_table(RULES), nl=False)
    elif name is None:
        _print_list(RULES)
    elif not _is_rule(name, RULES) and (same := _of_class(name, RULES)):
        _print_list(same)
    else:
        rule = _named(name, RULES)
        text = _as_listed(inspect.cleandoc(_doc(rule)), RULES)
        click.echo(f"{rule_name(rule)}, class {rule.CAUSE_CLASS}\n\n{text}")


def _print_list(rules: Sequence[Rule]) -> None:
    from watchdog.rules.documentation import rule_name

    width = max(len(rule_name(rule)) for rule in rules)
    # One line a rule, in order of precedence, for scripts; by class, as wide as the terminal, for
    # people.
    for_people = sys.stdout is not None and sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if for_people else 1000
    groups = {rule.CAUSE_CLASS: _of_class(rule.CAUSE_CLASS, rules) for rule in rules}
    for heading, group in groups.items() if for_people else [("", rules)]:
        if heading:
            click.secho(f"\n{heading}", bold=True)
        for rule in group:
            line = f"{rule_name(rule):<{width}}  {title(rule)}"
            click.echo(textwrap.fill(line, columns, subsequent_indent=" " * (width + 2)))


def causes_table(rules: Iterable[Rule]) -> str:
    """Name, class and title of each rule, in order of precedence, as a markdown table."""
    from watchdog.rules.documentation import rule_name

    rows = [f"| `{rule_name(rule)}` | `{rule.CAUSE_CLASS}` | {title(rule)} |" for rule in rules]
    return "\n".join(["| rule | class | what it is |", "| --- | --- | --- |", *rows]) + "\n"


def title(rule: Rule) -> str:
    """First line of the rule's documentation."""
    return _doc(rule).strip().split("\n", 1)[0]


def _as_listed(text: str, rules: Iterable[Rule]) -> str:
    """The text with other rules' names as the list has them, with hyphens."""
    from watchdog.rules.documentation import rule_name

    known = {rule_name(rule).replace("-", "_"): rule_name(rule) for rule in rules}
    names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    return re.sub(rf"\b(?:{names})\b", lambda match: known[match.group()], text)


def _doc(rule: Rule) -> str:
    return rule.__doc__ or ""


def _is_rule(name: str, rules: Iterable[Rule]) -> bool:
    from watchdog.rules.documentation import rule_name

    return _with_hyphens(name) in map(rule_name, rules)


def _of_class(name: str, rules: Sequence[Rule]) -> list[Rule]:
    wanted = _with_hyphens(name)
    return [rule for rule in rules if _with_hyphens(rule.CAUSE_CLASS) == wanted]


def _with_hyphens(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _named(name: str, rules: Iterable[Rule]) -> Rule:
    from watchdog.rules.documentation import rule_name

    known = {rule_name(rule): rule for rule in rules}
    wanted = _with_hyphens(name)
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=3)
    hint = f"; near: {', '.join(near)}" if near else ""
    raise UnknownRuleError(f"no rule is called {name!r}{hint}")
