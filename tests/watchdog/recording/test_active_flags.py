import argparse
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from watchdog.recording import active_flags


@pytest.fixture(autouse=True)
def nothing_recorded(monkeypatch):
    for name, empty in (("_values", {}), ("_defaults", {}), ("_origin", ""), ("_providers", [])):
        monkeypatch.setattr(active_flags, name, empty)


def flags():
    return {flag.name: (flag.value, flag.default) for flag in active_flags.snapshot()}


def test_before_validation_there_are_none():
    assert active_flags.snapshot() == ()


def test_arguments_are_kept_as_they_were_with_their_defaults():
    def provider(parser):
        parser.add_argument("--lora-rank", type=int, default=0)
        parser.add_argument("--colocate", action="store_true")
        return parser

    active_flags.defaults_from(provider)
    args = provider(argparse.ArgumentParser()).parse_args(["--colocate"])
    active_flags.record(args, "miles_validate_args")
    args.lora_rank = 64

    assert flags() == {"colocate": (True, False), "lora_rank": (0, 0)}
    assert active_flags.snapshot()[0].origin == "miles_validate_args"


def test_a_provider_that_needs_another_parser_leaves_the_flags_without_defaults():
    active_flags.defaults_from(lambda parser: parser.no_such_method())
    active_flags.record(SimpleNamespace(lora_rank=8), "x")

    assert flags() == {"lora_rank": (8, None)}


def test_validated_arguments_are_not_replaced_by_those_of_an_actor():
    active_flags.record(SimpleNamespace(a=1), "validated")
    active_flags.record_if_none(SimpleNamespace(a=2), "actor")

    assert flags() == {"a": (1, None)}


def test_values_that_json_cannot_hold_become_text():
    class Odd:
        def __str__(self):
            raise RuntimeError

    active_flags.record(SimpleNamespace(a=[1, 2], b=Odd(), c="x" * 900), "x")

    assert flags()["a"] == ("[1, 2]", None)
    assert flags()["b"] == ("<Odd>", None)


def test_a_nested_configuration_gets_dotted_names():
    @dataclass
    class Rollout:
        name: str = "vllm"
        engine: dict = field(default_factory=lambda: {"tp": 2})

    active_flags.record_tree({"rollout": Rollout(), "lr": 0.1}, "worker config")

    assert flags() == {
        "lr": (0.1, None),
        "rollout.engine.tp": (2, None),
        "rollout.name": ("vllm", None),
    }


def test_what_is_no_configuration_is_left_out():
    active_flags.record_tree(None, "x")
    active_flags.record_tree(object(), "x")

    assert active_flags.snapshot() == ()
