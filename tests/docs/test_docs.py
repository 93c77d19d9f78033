"""README and docs say what the code does."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from report_cases import native_lora

from watchdog import exit_status
from watchdog.cli import COMMANDS, group
from watchdog.errors import WatchdogError
from watchdog.reports import REPORTS
from watchdog.settings import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REPORT_JSON = (ROOT / "docs" / "report-json.md").read_text()


def block(text: str, name: str) -> str:
    """What stands between `<!-- name -->` and `<!-- /name -->`."""
    match = re.search(rf"<!-- {name} -->\n\n?(.*?)<!-- /{name} -->", text, re.S)
    assert match, f"no block {name}"
    return match.group(1).strip("\n") + "\n"


def documented_keys(section: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", section, re.M))


@pytest.mark.parametrize(
    ("title", "path"),
    [
        ("# report.json", ()),
        ("## An entry of `culprits`", ("culprits", 0)),
        ("## An entry of `groups` and `waiting`", ("groups", 0)),
        ("## An entry of `causes`", ("causes", 0)),
        ("## An entry of `processes`", ("processes", 0)),
    ],
)
def test_every_key_of_the_json_report_is_documented_and_no_other(title, path):
    data = json.loads(REPORTS["json"].render(*native_lora().told))
    for step in path:
        data = data[step]
    section = REPORT_JSON.split(title + "\n")[1].split("\n## ")[0]

    assert documented_keys(section) == set(data)


def test_the_readmes_settings_are_those_of_the_program():
    table = CliRunner().invoke(group, ["settings", "--markdown"]).output

    assert block(README, "settings") == table


def test_the_readmes_exit_statuses_are_those_of_the_program():
    rows = [f"| {who} | {status} | {meaning} |\n" for who, status, meaning in exit_status.TABLE]
    table = "".join(["| who | status | meaning |\n", "| --- | --- | --- |\n", *rows])

    assert block(README, "exit statuses") == table


def test_every_exit_status_of_an_error_is_in_the_table():
    for module in COMMANDS:
        importlib.import_module(f"watchdog.cli.{module}")
    listed = {row.status for row in exit_status.TABLE}
    errors = [WatchdogError]
    while errors:
        error = errors.pop()
        assert error.exit_code in listed, error
        errors += error.__subclasses__()


def test_the_table_of_causes_is_made_of_the_rules():
    table = CliRunner().invoke(group, ["rules", "--markdown"]).output

    assert block((ROOT / "docs" / "causes.md").read_text(), "causes") == table


def test_the_readme_names_every_subcommand():
    assert {name for name in COMMANDS if f"miles-watchdog {name}" not in README} == set()


def test_the_readme_has_exactly_two_set_up_commands_of_one_line_each():
    commands = re.findall(r"^python3 -m venv .*$", README, re.M)

    assert len(commands) == 2
    assert all("\\" not in command for command in commands)
    assert commands[0].endswith(".venv/bin/miles-watchdog demo")
    assert "pytest" in commands[1]


def test_links_to_files_of_the_repository_lead_somewhere():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_says_of_a_switch_that_means_nothing_what_the_settings_do_with_it():
    settings = Settings.from_environ({"MILES_WATCHDOG": "maybe"})

    assert settings.enabled
    assert "counts as 1" in settings.warnings[0]
    text = " ".join(README.split())
    assert "such as `maybe`, counts as 1, with a warning" in text
