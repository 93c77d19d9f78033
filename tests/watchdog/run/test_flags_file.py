import json
import os
import subprocess
import sys

import pytest

from watchdog.evidence import Flag
from watchdog.run import flags_file, substitute

# A launcher that validates, and a rank that it starts, which gets no argument at all.
LAUNCHER = """
import argparse, os, subprocess, sys
from watchdog.recording import active_flags
args = argparse.Namespace(lora_rank=8, api_token="hunter2-hunter2", colocate=True)
active_flags.record(args, "validate", {"lora_rank": 0, "colocate": False})
rank = subprocess.run([sys.executable, "-c", RANK], env=os.environ | {"RANK": "0"}, text=True,
                      capture_output=True, check=True)
print(rank.stdout)
"""
RANK = """
import os, stat
from pathlib import Path
from watchdog.run import flags_file
for flag in flags_file.read(os.environ):
    print(flag.name, flag.value, flag.default, flag.origin.split(" in ")[0])
path = Path(os.environ["MILES_WATCHDOG_DIR"]) / os.environ["MILES_WATCHDOG_RUN"] / "flags.json"
if path.exists():
    print(stat.filemode(path.stat().st_mode))
"""


def launched(tmp_path, **environ):
    program = f"RANK = {RANK!r}\n{LAUNCHER}"
    return subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": os.environ["PATH"],
            "MILES_WATCHDOG": "1",
            "MILES_WATCHDOG_DIR": str(tmp_path / "runs"),
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_rank_without_arguments_reads_those_of_its_launcher_masked(tmp_path):
    result = launched(tmp_path)

    lines = result.stdout.splitlines()
    assert "colocate True False validate" in lines, result.stderr
    assert "lora_rank 8 0 validate" in lines
    assert "hunter2" not in result.stdout
    assert "-rw-------" in lines


def test_the_file_is_gone_when_the_launcher_has_ended(tmp_path):
    launched(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_where_the_folder_cannot_be_written_they_lie_where_the_reports_go(tmp_path):
    (tmp_path / "runs").write_text("a file where the folder should be")
    (tmp_path / "tmp").mkdir()

    result = launched(tmp_path, TMPDIR=str(tmp_path / "tmp"))

    assert "lora_rank 8 0 validate" in result.stdout.splitlines(), result.stderr
    assert result.stderr == ""
    assert list((tmp_path / "tmp").iterdir()) == []


def test_arguments_in_a_substitute_of_somebody_else_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(substitute, "substitute_root", lambda: tmp_path / "instead")
    environ = {"MILES_WATCHDOG_DIR": str(tmp_path / "runs"), "MILES_WATCHDOG_RUN": "a-run"}
    path = tmp_path / "instead" / "a-run" / "flags.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"name": "lora_rank", "value": 8}]))
    assert flags_file.read(environ) == (Flag("lora_rank", 8),)

    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)

    assert flags_file.read(environ) == ()


def test_no_place_at_all_costs_the_launcher_nothing(tmp_path):
    for name in ("runs", "tmp"):
        (tmp_path / name).write_text("a file where the folder should be")

    result = launched(tmp_path, TMPDIR=str(tmp_path / "tmp"))

    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture
def written(tmp_path):
    folder = tmp_path / "a-run"
    folder.mkdir()
    flags = [Flag("lora_rank", 8, 0, "validate"), Flag("colocate", True, False, "validate")]
    entries = [{"name": f.name, "value": f.value, "default": f.default, "origin": f.origin}
               for f in flags]  # fmt: skip
    (folder / "flags.json").write_text(json.dumps(entries))
    return {"MILES_WATCHDOG_DIR": str(tmp_path), "MILES_WATCHDOG_RUN": "a-run"}


def test_what_a_rank_knows_itself_counts_and_gets_the_defaults(written):
    own = (Flag("lora_rank", 4, None, "actor"), Flag("seed", 1, None, "actor"))

    completed = flags_file.completed(own, written)

    assert completed == (Flag("lora_rank", 4, 0, "actor"), Flag("seed", 1, None, "actor"))


@pytest.mark.parametrize("content", ["", "{", "[1]", '[{"other": 1}]', "null"])
def test_a_file_that_is_not_ours_is_no_flags(written, tmp_path, content):
    (tmp_path / "a-run" / "flags.json").write_text(content)

    assert flags_file.read(written) == ()


RAY_DRIVER = """
import argparse, os, ray
from watchdog.recording import active_flags
active_flags.record(argparse.Namespace(lora_rank=8), "validate", {"lora_rank": 0})
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
@ray.remote
class Rank:
    def flags(self):
        from watchdog.run import flags_file
        from watchdog.process_identity import run_name
        return flags_file.read(os.environ | {"MILES_WATCHDOG_RUN": run_name(os.environ)})
print(ray.get(Rank.remote().flags.remote(), timeout=100))
"""


@pytest.mark.ray
@pytest.mark.slow
def test_an_actor_reads_the_arguments_of_its_driver(tmp_path):
    pytest.importorskip("ray")

    result = subprocess.run(
        [sys.executable, "-c", RAY_DRIVER],
        env=os.environ | {"MILES_WATCHDOG": "1", "MILES_WATCHDOG_DIR": str(tmp_path / "runs")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert "name='lora_rank', value=8, default=0" in result.stdout, result.stderr
    assert list(tmp_path.iterdir()) == []
