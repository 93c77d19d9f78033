import sys
from types import SimpleNamespace

import pytest

from watchdog.recording import memory_ledger


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(memory_ledger, "_regions", {})
    monkeypatch.setattr(memory_ledger, "_paused", set())
    monkeypatch.delitem(sys.modules, "miles.utils.residency", raising=False)
    monkeypatch.delenv("TMS_INIT_ENABLE", raising=False)


def states():
    return {region.tag: region.residency for region in memory_ledger.snapshot()}


def test_a_paused_region_is_backed_up_or_without_a_copy():
    memory_ledger.region_used("param_buffer", False)
    memory_ledger.region_used("grad_buffer", True)
    assert set(states().values()) == {"resident"}

    memory_ledger.paused(None)

    assert states() == {"param_buffer": "paused_without_copy", "grad_buffer": "backed_up"}


def test_one_part_without_a_copy_decides_the_region():
    memory_ledger.region_used("param_buffer", True)
    memory_ledger.region_used("param_buffer", False)
    memory_ledger.paused("param_buffer")

    assert states() == {"param_buffer": "paused_without_copy"}


def test_what_is_resumed_is_resident_again():
    memory_ledger.region_used("a", False)
    memory_ledger.region_used("b", False)
    memory_ledger.paused(None)

    memory_ledger.resumed("a")

    assert states() == {"a": "resident", "b": "paused_without_copy"}


def test_under_preload_everything_else_is_the_default_region(monkeypatch):
    monkeypatch.setenv("TMS_INIT_ENABLE", "1")
    monkeypatch.setenv("TMS_INIT_ENABLE_CPU_BACKUP", "1")

    memory_ledger.paused(None)

    assert states() == {"default": "backed_up"}


@pytest.mark.parametrize(
    ("region", "residency"),
    [
        ({"paused": False, "has_backup": False}, "resident"),
        ({"paused": True, "has_backup": True, "backup_target": "cpu"}, "backed_up"),
        ({"paused": True, "has_backup": True, "backup_target": "disk"}, "paused_without_copy"),
        ({"paused": True, "has_backup": False, "backup_target": None}, "paused_without_copy"),
    ],
)
def test_a_ledger_of_the_framework_goes_first(monkeypatch, region, residency):
    snapshot = {"param_buffer": region | {"bytes": 4096, "num_tensors": 2, "first_tensors": ["w"]}}
    monkeypatch.setitem(
        sys.modules,
        "miles.utils.residency",
        SimpleNamespace(residency_snapshot=lambda: snapshot),
    )

    (found,) = memory_ledger.snapshot()

    assert (found.tag, found.residency, found.num_bytes) == ("param_buffer", residency, 4096)
    assert found.tensors == ("w",)
