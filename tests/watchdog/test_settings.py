import math

import pytest

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
        ("MILES_WATCHDOG", "maybe"),
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
