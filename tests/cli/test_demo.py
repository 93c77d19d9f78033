"""`demo` as a newcomer runs it. The scenarios themselves train for real."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from watchdog.cli import demo, group
from watchdog.demo.job import TOKEN
from watchdog.demo.scenarios import SCENARIOS

DEMO = [sys.executable, "-uc", "from watchdog.cli import main; main()", "demo"]


def processes_of_demo(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
            # Other tests that run meanwhile have jobs too, some without a folder.
            if TOKEN in environ and environ.get("MILES_WATCHDOG_DIR", "").startswith(str(folder)):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def run_demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments, "--output", str(folder)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shown_at_once(tmp_path_factory):
    """The demo without a name, once for all that is to be seen of it, and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    return run_demo(folder), folder


def check(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "As expected." in done.stdout
    assert processes_of_demo(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENARIOS)[1:])
def test_a_scenario_shows_what_it_says_and_leaves_no_process(name, tmp_path):
    check(run_demo(tmp_path / "out", name), tmp_path)


@pytest.mark.slow
@pytest.mark.xdist_group("demo")
def test_without_a_name_the_first_scenario_shows_what_it_says(shown_at_once):
    done, folder = shown_at_once

    check(done, folder)
    assert next(iter(SCENARIOS.values())).title in done.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("demo")
def test_the_demos_incident_is_rendered_again_in_every_format(shown_at_once):
    _, folder = shown_at_once
    (incident,) = folder.glob("*/incidents/*")
    written = json.loads((incident / "report.json").read_text())

    for name in ("json", "markdown", "summary", "terminal"):
        result = CliRunner().invoke(group, ["report", str(incident), "--format", name])
        assert result.exit_code == 0, result.output
        assert "missing-backup-lora-colocate" in result.output
        if name == "json":
            again = json.loads(result.output)
            assert (again["state"], again["culprits"]) == (written["state"], written["culprits"])


@pytest.mark.slow
@pytest.mark.xdist_group("demo")
def test_the_readme_shows_what_the_demo_prints(shown_at_once):
    done, _ = shown_at_once
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = re.search(r"<!-- summary -->\n\n```text\n(.*?)```", readme, re.S).group(1)
    telling = re.compile(r"(HUNG: .*|cause  .*|do     .*)")

    assert telling.findall(shown)
    assert telling.findall(shown) == telling.findall(done.stdout)[: len(telling.findall(shown))]


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_demo_ends_the_job(signum, tmp_path):
    # A shell in the background, or nohup, may have these tests ignore the signal.
    command = ["env", f"--default-signal={signum}", *DEMO]
    demo = subprocess.Popen(
        [*command, "--keep", "--verbose", "--output", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert any("miles" in line for line in demo.stdout)
        os.kill(demo.pid, signum)
        demo.communicate(timeout=60)
    finally:
        demo.kill()
        demo.wait()
        left = processes_of_demo(tmp_path)
        for process in left:
            process.kill()

    assert left == []


def test_the_list_names_every_scenario_with_what_it_shows():
    output = CliRunner().invoke(group, ["demo", "--list"]).output

    assert [line.split()[0] for line in output.splitlines()] == list(SCENARIOS)
    assert all(scenario.title in output for scenario in SCENARIOS.values())


@pytest.mark.parametrize("missing", ["torch", "miles.train"])
def test_without_torch_or_miles_the_demo_says_what_to_install(monkeypatch, missing):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else real("json")
    )

    result = CliRunner().invoke(group, ["demo"])

    assert result.exit_code == 2
    assert f"{missing} cannot be imported" in result.stderr
    assert "pip install torch==2.13.0 -e '.[miles]'" in result.stderr


def test_a_folder_that_cannot_be_made_is_refused_with_advice(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("watchdog.cli.demo._check_importable", lambda: None)
    (tmp_path / "file").write_text("")

    result = CliRunner().invoke(group, ["demo", "--output", str(tmp_path / "file" / "x")])

    assert result.exit_code == 2
    assert "--output DIR" in result.stderr


def test_an_incident_that_lay_in_the_folder_before_is_not_the_demos(tmp_path):
    old, new = (tmp_path / "run" / "incidents" / name / "report.json" for name in ("1", "2"))
    for file in (old, new):
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"state": file.parent.name}))

    assert [report["state"] for report in demo._reports(tmp_path, {old})] == ["2"]
