import importlib
import sys

import pytest

from watchdog.recording.call_site import CallSites


@pytest.fixture
def site_in(tmp_path, monkeypatch):
    """Run a module of a package and get the call site that is found in it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def site(file, module):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import sys\ndef sync():\n    return sys._getframe()\n")
        texts = []
        sites = CallSites(lambda text: texts.append(text) or 1)
        try:
            sites.number_of(importlib.import_module(module).sync())
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "deep_package"]:
                del sys.modules[name]
        return texts[0]

    return site


def test_a_file_is_told_from_its_package_on(site_in):
    site = site_in("deep_package/a/b/c/update.py", "deep_package.a.b.c.update")

    assert site == "deep_package/a/b/c/update.py:3 sync"


def test_a_package_itself_is_told_by_its_folder(site_in):
    site = site_in("deep_package/a/__init__.py", "deep_package.a")

    assert site == "deep_package/a/__init__.py:3 sync"


def test_a_lone_file_is_told_by_its_last_folders(site_in, tmp_path):
    site = site_in("deep_package.py", "deep_package")

    assert site.endswith(f"{tmp_path.name}/deep_package.py:3 sync")
    assert site.count("/") == 3
