import importlib
import types

import pytest

from watchdog.adapters import ADAPTERS, patching
from watchdog.adapters.hook import Hook, phases, section
from watchdog.guest import notices


def module_with(**attributes):
    module = types.ModuleType("framework.module")
    vars(module).update(attributes)
    return module


def apply(module, *hooks):
    patching._patcher("framework", list(hooks))(module)


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_table_is_complete(name):
    adapter = importlib.import_module(f"watchdog.adapters.{name}")

    assert isinstance(adapter.FRAMEWORK, str)
    assert "Source:" in adapter.__doc__
    for hook in adapter.HOOKS:
        assert hook.what in ("section", "phase", "observe")
        assert bool(hook.name) == (hook.what == "phase")
        assert (hook.observe is not None) == (hook.what == "observe")


def test_functions_and_methods_are_replaced():
    class Updater:
        def send(self):
            return "sent"

        @staticmethod
        def create():
            return "created"

        @classmethod
        def build(cls):
            return cls

    module = module_with(read=lambda: "read", Updater=Updater)
    names = ("read", "Updater.send", "Updater.create", "Updater.build")

    apply(module, *phases("framework.module", "send_chunk", *names))

    assert (module.read(), Updater().send(), Updater.create()) == ("read", "sent", "created")
    assert Updater.build() is Updater
    assert hasattr(module.read, "__wrapped__")
    assert hasattr(Updater.send, "__wrapped__")
    assert hasattr(Updater.create, "__wrapped__")


def test_an_inherited_method_is_left_to_the_class_that_defines_it():
    class Base:
        def send(self):
            return "base"

    class Derived(Base):
        pass

    apply(module_with(Derived=Derived), *phases("framework.module", "send", "Derived.send"))

    assert "send" not in vars(Derived)


def test_a_missing_section_costs_one_warning_that_names_it(monkeypatch, capfd):
    monkeypatch.setattr(notices, "_said", set())
    hook = section("framework.module", "Actor.update_weights")

    apply(module_with(), hook)
    apply(module_with(), hook)

    assert capfd.readouterr().err.count("framework.module:Actor.update_weights") == 1


def test_what_only_some_versions_have_may_be_missing(monkeypatch, capfd):
    monkeypatch.setattr(notices, "_said", set())

    apply(module_with(), *phases("framework.module", "read_weights", "read", "Reader.read"))

    assert capfd.readouterr().err == ""


def test_a_class_that_ray_made_before_the_hook_inherits_the_hooked_method():
    class Base:
        def update_weights(self):
            return "synced"

    def traced(self):
        return original(self)

    original = Base.update_weights
    modified = type("Actor", (Base,), {"update_weights": traced})
    actor_class = types.SimpleNamespace(
        __ray_metadata__=types.SimpleNamespace(modified_class=modified)
    )

    apply(
        module_with(Base=Base, Actor=actor_class),
        Hook("framework.module", "Base.update_weights", "section"),
    )

    assert "update_weights" not in vars(modified)
    assert modified.update_weights is Base.update_weights
    assert hasattr(modified.update_weights, "__wrapped__")
