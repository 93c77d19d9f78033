"""`miles-watchdog rules`: the known causes and their documentation."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from types import ModuleType

import click

from watchdog.errors import WatchdogError


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
    """
    from watchdog.rules import RULES

    modules = {rule_name(module): module for module in RULES}
    if markdown:
        click.echo(causes_table(modules), nl=False)
        return
    if name is None:
        for rule, module in modules.items():
            click.echo(f"{rule:<44} {title(module)}")
        return
    wanted = name.replace("_", "-")
    if wanted not in modules:
        near = difflib.get_close_matches(wanted, modules, n=3)
        hint = f"; near: {', '.join(near)}" if near else ""
        raise UnknownRuleError(f"no rule is called {name!r}{hint}")
    click.echo(f"{wanted}\n\n{inspect.getdoc(modules[wanted])}")


def causes_table(modules: Mapping[str, ModuleType]) -> str:
    """Name and title of each rule, in order of precedence, as a markdown table."""
    rows = [f"| `{name}` | {title(module)} |" for name, module in modules.items()]
    return "\n".join(["| rule | what it is |", "| --- | --- |", *rows]) + "\n"


def rule_name(module: ModuleType) -> str:
    """`missing-rank` for the module `watchdog.rules.missing_rank`."""
    return module.__name__.rsplit(".", 1)[-1].replace("_", "-")


def title(module: ModuleType) -> str:
    """First line of the rule's documentation."""
    return (module.__doc__ or "").strip().split("\n", 1)[0]
