import builtins
import importlib
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import watchdog.settings
from watchdog.settings import Settings, knobs


def test_without_variables_every_knob_has_its_default():
    settings = Settings.from_environ({})

    assert not settings.enabled
    assert settings.stall_after_s is None
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("variable", "text", "attribute", "value"),
    [
        ("MILES_WATCHDOG", "1", "enabled", True),
        ("MILES_WATCHDOG_DIR", "/runs", "dir", "/runs"),
        ("MILES_WATCHDOG_STALL_AFTER", "5", "stall_after_s", 5.0),
        ("MILES_WATCHDOG_STALL_AFTER", "AUTO", "stall_after_s", None),
        ("MILES_WATCHDOG_COLLECTIVE_AFTER", "off", "collective_after_s", math.inf),
        ("MILES_WATCHDOG_ABORT_AFTER", "0.5", "abort_after_s", 0.5),
        ("MILES_WATCHDOG_ABORT_AFTER", "never", "abort_after_s", None),
        ("MILES_WATCHDOG_NATIVE", "0", "native", "0"),
        ("MILES_WATCHDOG_MAX_INCIDENTS", "2", "max_incidents", 2),
        ("MILES_WATCHDOG_REDACT", "site, team", "redact", ("site", "team")),
    ],
)
def test_a_good_value_is_taken(variable, text, attribute, value):
    settings = Settings.from_environ({variable: text})

    assert getattr(settings, attribute) == value
    assert settings.warnings == ()
    assert settings.origins[attribute] == "environment"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("MILES_WATCHDOG_STALL_AFTER", "-1"),
        ("MILES_WATCHDOG_STALL_AFTER", "nan"),
        ("MILES_WATCHDOG_STALL_AFTER", "5 minutes"),
        ("MILES_WATCHDOG_ABORT_AFTER", "0"),
        ("MILES_WATCHDOG_NATIVE", "yes"),
        ("MILES_WATCHDOG_MAX_INCIDENTS", "0"),
        ("MILES_WATCHDOG_MAX_INCIDENT_MB", "1e3"),
    ],
)
def test_a_bad_value_costs_one_warning_that_names_variable_value_and_what_is_used(variable, text):
    settings = Settings.from_environ({variable: text})

    (warning,) = settings.warnings
    used = next(knob.default for knob in knobs() if knob.variable == variable)
    assert variable in warning
    assert repr(text) in warning
    assert f"{used} is used instead" in warning


def test_a_misspelt_variable_is_named():
    settings = Settings.from_environ({"MILES_WATCHDOG_STALL_AFTR": "5"})

    assert settings.warnings == (
        "MILES_WATCHDOG_STALL_AFTR is not a setting of the watchdog; it is ignored",
    )


def test_what_the_watchdog_sets_for_its_children_is_no_unknown_setting():
    environ = {"MILES_WATCHDOG_RUN": "a", "MILES_WATCHDOG_OWNER": "0:1"}

    assert Settings.from_environ(environ).warnings == ()


def test_every_knob_says_what_it_is_for():
    for knob in knobs():
        assert knob.variable.startswith("MILES_WATCHDOG")
        assert knob.help.endswith(".")
        assert knob.value == knob.default


def test_a_knob_that_was_set_shows_its_value_and_origin():
    settings = Settings.from_environ({"MILES_WATCHDOG_STALL_AFTER": "7.5"})

    (knob,) = (knob for knob in knobs(settings) if knob.variable.endswith("STALL_AFTER"))

    assert (knob.value, knob.origin, knob.unit) == ("7.5", "environment", "s")


def test_the_unit_that_the_table_shows_may_stand_in_the_value():
    settings = Settings.from_environ({"MILES_WATCHDOG_MAX_INCIDENT_MB": "64 MB"})

    assert settings.max_incident_mb == 64
    assert settings.warnings == ()


PTH = Path(watchdog.settings.__file__).with_name("miles_watchdog_startup.pth")


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        *((text, False) for text in ("", " ", "0", "off", "OFF", "false", "no", " 0 ")),
        *((text, True) for text in ("1", "on", "yes", "True", "2", "maybe", "00")),
    ],
)
def test_settings_sections_and_the_start_up_hook_agree_on_what_is_on(text, is_on):
    environ = {"MILES_WATCHDOG": text}
    seen = {"__import__": lambda name: started.append(name) or importlib}
    started: list[str] = []
    hook = PTH.read_text().replace("os.environ", "environ")
    hook = hook.replace('.import_module("watchdog.startup").start()', "")
    exec(hook, {"environ": environ, "__builtins__": {**vars(builtins), **_traced(seen)}})
    section = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; sys.path[:0] = sys.argv[1:];"
         "import watchdog.section as s; print(s._is_on)", *sys.path],
        env={**os.environ, **environ}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert Settings.from_environ(environ).enabled is is_on
    assert bool(started) is is_on
    assert section.stdout.strip() == str(is_on)


def _traced(seen):
    """`__import__` that notes `importlib`, which the hook asks for only when it starts."""
    note = seen["__import__"]

    def traced(name, *rest):
        return note(name) if name == "importlib" else importlib.__import__(name, *rest)

    return {"__import__": traced}


@pytest.mark.parametrize("text", ["2", "maybe"])
def test_an_unknown_word_turns_it_on_and_costs_one_warning(text):
    settings = Settings.from_environ({"MILES_WATCHDOG": text})

    assert settings.enabled
    assert settings.warnings == (f"MILES_WATCHDOG={text!r} counts as 1; 0 turns the watchdog off",)


@pytest.mark.parametrize("text", ["1", "on", "0", "no", ""])
def test_a_known_word_costs_no_warning(text):
    assert Settings.from_environ({"MILES_WATCHDOG": text}).warnings == ()
