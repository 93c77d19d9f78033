"""Every check is listed, documented and proven by a launch that fires it and one that does not."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import watchdog.static_checks
from tests.static_checks.cases import CASES, UNKNOWN_HERE, Case
from watchdog.rules import RULES
from watchdog.rules.documentation import rule_name
from watchdog.static_checks import CHECKS
from watchdog.static_checks.hazards import check_name, documentation, hazards_of

SUPPORT = {"coverage", "dates", "hazards", "host", "launch", "modes", "reading"}


def module_name(check):
    return check.__name__.rsplit(".", 1)[-1]


def test_every_module_of_the_package_is_listed_once():
    modules = {name for _, name, _ in pkgutil.iter_modules(watchdog.static_checks.__path__)}
    listed = [module_name(check) for check in CHECKS]

    assert len(listed) == len(set(listed))
    assert modules - SUPPORT == set(listed) == set(CASES)


@pytest.mark.parametrize("check", CHECKS, ids=module_name)
def test_a_check_is_documented_and_names_a_rule_that_exists(check):
    title, *_, source = documentation(check)

    assert title.endswith(".")
    assert len(title) <= 100
    assert all(re.match(r"https://\S+$", address) for address in source.split())
    assert check.RULE in {"", *(rule_name(rule) for rule in RULES)}


@pytest.mark.parametrize("name", CASES)
def test_a_check_fires_with_its_confidence_and_says_by_what(name):
    confidence, fires, _ = CASES[name]

    found = {hazard.check: hazard for hazard in hazards_of(fires.launch())}

    hazard = found[name.replace("_", "-")]
    assert hazard.confidence == confidence
    assert all(hazard.facts)
    assert hazard.facts


@pytest.mark.parametrize("name", CASES)
def test_a_check_is_silent_at_its_look_alike(name):
    _, _, silent = CASES[name]

    assert name.replace("_", "-") not in {h.check for h in hazards_of(silent.launch())}


@pytest.mark.parametrize("name", UNKNOWN_HERE)
def test_what_nothing_here_decides_is_no_more_than_a_suspicion(name):
    found = {hazard.check: hazard for hazard in hazards_of(UNKNOWN_HERE[name].launch())}

    assert found[name.replace("_", "-")].confidence == "suspect"


def test_the_most_certain_hazard_comes_first():
    case = CASES["gloo_interface_not_a_name"][1]
    launch = type(case)(case.script + " --lora-rank 8 --disable-weights-backuper").launch()

    assert [h.confidence for h in hazards_of(launch)] == ["certain", "suspect"]


def test_names_are_shown_with_dashes():
    module = importlib.import_module("watchdog.static_checks.lora_without_backuper")

    assert check_name(module) == "lora-without-backuper"


@pytest.mark.parametrize("provider", ["my.provider", "my.native_lora"])
def test_of_a_provider_either_its_name_or_that_it_is_not_looked_into_is_said_not_both(provider):
    script = CASES["provider_without_backuper"][1].script.replace("my.provider", provider)

    found = {h.check for h in hazards_of(Case(script).launch())}

    by_name = "lora" in provider
    assert ("lora-without-backuper" in found) is by_name
    assert ("provider-without-backuper" in found) is not by_name


def test_that_the_audit_is_off_is_one_of_the_facts():
    script = CASES["provider_without_backuper"][1].script

    (hazard,) = hazards_of(Case(f"{script} --no-weight-residency-audit").launch())

    assert "--no-weight-residency-audit: nothing tells before" in hazard.facts
