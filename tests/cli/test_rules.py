from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import click
import pytest
from click.testing import CliRunner

from watchdog.cli import group
from watchdog.rules import RULES
from watchdog.rules.documentation import HEADINGS, rule_name


def run(*arguments: str):
    return CliRunner().invoke(group, ["rules", *arguments])


def test_the_list_is_in_order_of_precedence():
    names = [line.split()[0] for line in run().output.splitlines()]

    assert names == [rule_name(rule) for rule in RULES]


@pytest.mark.parametrize("name", [rule_name(rule) for rule in RULES])
def test_a_rule_is_explained_under_its_headings(name):
    lines = run(name).output.splitlines()

    assert lines[0].startswith(f"{name}, class ")
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)


def test_the_name_of_the_module_does_as_well():
    name = rule_name(RULES[0])

    assert run(name.replace("-", "_")).output == run(name).output


def test_an_unknown_name_is_refused_with_near_ones():
    name = rule_name(RULES[0])

    result = run(name[:-1])

    assert result.exit_code == 2
    assert f"near: {name}" in result.stderr


def test_other_rules_are_named_as_the_list_names_them():
    text = "\n".join(run(rule_name(rule)).output for rule in RULES)

    underscored = {rule_name(rule).replace("-", "_") for rule in RULES if "-" in rule_name(rule)}
    classes = {rule.CAUSE_CLASS for rule in RULES}
    assert not {name for name in underscored - classes if f" {name}" in text}


def on_terminal(*arguments: str, columns: int = 80) -> str:
    """What the command line prints on a terminal of that width, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-c", "from watchdog.cli import main; main()", *arguments],
        stdin=subprocess.DEVNULL, stdout=theirs, env=environ,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        # Where nobody holds the other end any more, reading fails.
        with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:
            while data := terminal.read(4096):
                said += data
        assert process.wait(60) == 0
    return click.unstyle(said.decode())


def test_on_a_terminal_the_rules_stand_under_their_classes():
    said = on_terminal("rules")

    lines = [line for line in said.splitlines() if line]
    classes = {rule.CAUSE_CLASS: None for rule in RULES}
    assert [line for line in lines if line in classes] == list(classes)
    assert all(len(line) <= 80 for line in lines)
    assert {rule_name(rule) for rule in RULES} <= {line.split()[0] for line in lines}


@pytest.mark.parametrize("name", ["missing_backup", "missing-backup", "other"])
def test_of_a_class_the_rules_are_listed(name):
    listed = [line.split()[0] for line in run(name).output.splitlines()]

    of_class = name.replace("-", "_")
    assert listed == [rule_name(rule) for rule in RULES if of_class == rule.CAUSE_CLASS]
    assert listed


def test_a_name_that_is_a_class_as_well_explains_the_rule():
    both = {rule_name(rule) for rule in RULES} & {
        rule.CAUSE_CLASS.replace("_", "-") for rule in RULES
    }

    assert both
    for name in both:
        assert run(name.replace("-", "_")).output.startswith(f"{name}, class ")
