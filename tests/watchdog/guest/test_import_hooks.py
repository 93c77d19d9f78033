import importlib
import sys

import pytest

from watchdog.guest import import_hooks
from watchdog.guest.import_hooks import when_imported


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"hooked_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("value = 1\ndef f(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(import_hooks, "_callbacks", {})
    yield name
    sys.modules.pop(name, None)


def test_it_calls_back_when_the_module_has_run(module):
    seen = []
    when_imported(module, lambda imported: seen.append(imported.value))

    importlib.import_module(module)

    assert seen == [1]


def test_it_calls_back_at_once_for_a_module_that_is_there(module):
    imported = importlib.import_module(module)
    seen = []

    when_imported(module, seen.append)

    assert seen == [imported]


def test_the_module_looks_as_if_nothing_had_happened(module):
    plain = importlib.import_module(module)
    plain_loader = type(plain.__loader__)
    del sys.modules[module]
    when_imported(module, lambda imported: None)

    hooked = importlib.import_module(module)

    assert type(hooked.__loader__) is plain_loader
    assert type(hooked.__spec__.loader) is plain_loader
    assert hooked.__file__ == plain.__file__


def test_an_error_in_a_callback_does_not_reach_the_importer(module, capsys):
    when_imported(module, lambda imported: 1 / 0)

    assert importlib.import_module(module).value == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_an_error_of_the_module_reaches_the_importer(module, tmp_path):
    (tmp_path / f"{module}.py").write_text("raise KeyError('of the host')")
    when_imported(module, lambda imported: None)

    with pytest.raises(KeyError, match="of the host"):
        importlib.import_module(module)


def test_a_module_that_does_not_exist_is_not_found_as_before():
    when_imported("no_such_module_anywhere", lambda imported: None)

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
