"""Every rule is listed, documented, named as it says, and proven by files."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path
from typing import get_args

import pytest

import watchdog.rules
from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence
from watchdog.findings import CauseClass, Diagnosis
from watchdog.rules import RULES, Rule
from watchdog.rules.documentation import documentation, rule_name
from watchdog.serialization import evidence_from_json

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*/*.json"))
SUPPORT = {"documentation"}


def module_name(rule: Rule) -> str:
    return rule.__name__.rsplit(".", 1)[-1]


def case_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def diagnosed(path: Path) -> Diagnosis:
    evidence: Evidence = evidence_from_json(path.read_text())
    return diagnose(evidence)


def test_every_module_of_the_package_is_listed_once() -> None:
    modules = {name for _, name, _ in pkgutil.iter_modules(watchdog.rules.__path__)}

    listed = [module_name(rule) for rule in RULES]

    assert len(listed) == len(set(listed))
    assert modules - SUPPORT == set(listed)


def test_there_are_enough_rules_and_every_class_has_one() -> None:
    classes = {rule.CAUSE_CLASS for rule in RULES}

    assert len(RULES) >= 40
    assert classes == set(get_args(CauseClass))


@pytest.mark.parametrize("rule", RULES, ids=module_name)
def test_a_rule_is_documented_under_the_fixed_headings(rule: Rule) -> None:
    text = documentation(rule)

    assert text.title.endswith(".")
    assert len(text.title) <= 100
    assert all(re.match(r"https://\S+$", source) for source in text.source.split())


@pytest.mark.parametrize("rule", RULES, ids=module_name)
def test_a_rule_is_proven_by_a_case_that_fires_and_one_that_is_silent(rule: Rule) -> None:
    names = [path.name for path in (HERE / module_name(rule)).glob("*.json")]

    assert any(name.startswith("fires_") for name in names)
    assert any(name.startswith("silent_") for name in names)
    assert all(name.startswith(("fires_", "silent_")) for name in names)


def test_no_case_belongs_to_a_rule_that_does_not_exist() -> None:
    assert {path.parent.name for path in CASES} == {module_name(rule) for rule in RULES}


@pytest.mark.parametrize("path", [p for p in CASES if p.name.startswith("fires_")], ids=case_id)
def test_a_rule_fires_and_comes_first(path: Path) -> None:
    wanted = path.parent.name.replace("_", "-")

    causes = diagnosed(path).causes

    assert [cause.rule for cause in causes][:1] == [wanted]
    assert causes[0].confidence in ("confirmed", "likely")
    assert causes[0].supports
    assert causes[0].remedy
    assert causes[0].source


@pytest.mark.parametrize("path", [p for p in CASES if p.name.startswith("silent_")], ids=case_id)
def test_a_rule_is_silent_at_its_neighbour(path: Path) -> None:
    name = path.parent.name.replace("_", "-")

    strong = [c.rule for c in diagnosed(path).causes if c.confidence != "possible"]

    assert name not in strong


def test_names_are_shown_with_dashes() -> None:
    assert rule_name(RULES[0]) == module_name(RULES[0]).replace("_", "-")
