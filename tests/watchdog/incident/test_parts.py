import os
import select
import stat
from pathlib import Path

import pytest

from watchdog.evidence import Evidence, Frame, Process, StackSample, ThreadStack
from watchdog.incident.folder import IncidentFolder, NothingWrittenError
from watchdog.incident.leader import Leadership
from watchdog.incident.on_stall import run_command
from watchdog.incident.size import fitting_json
from watchdog.serialization import evidence_from_json

REPORT = Path("/x y/report.md")


def run(command, **options):
    return run_command(command, incident=REPORT.parent, report=REPORT, **options)


def test_a_plain_command_gets_the_report_as_its_last_argument():
    ended, output = run("printf %s,")

    assert output == b"/x y/report.md,"
    assert "status 0" in ended


def test_a_command_line_for_the_shell_is_given_to_the_shell():
    assert run('echo "$1" | tr a-z A-Z')[1] == b"/X Y/REPORT.MD\n"


def test_the_command_does_not_inherit_the_watchdog(monkeypatch):
    monkeypatch.setenv("MILES_WATCHDOG", "1")
    monkeypatch.setenv("LD_PRELOAD", "")

    assert run("echo $MILES_WATCHDOG,${LD_PRELOAD-unset}")[1] == b"0,unset\n"


def test_a_command_that_cannot_be_started_is_said():
    assert "could not be started" in run("/nowhere/command")[0]
    assert "could not be started" in run("echo 'unbalanced")[0]


def test_a_command_without_end_is_ended_with_its_children(tmp_path):
    pid_file = tmp_path / "pid"

    ended, _ = run(f"sleep 600 & echo $! > {pid_file}; wait", timeout_s=1)

    child = int(pid_file.read_text())
    assert "was ended after 1 s" in ended
    assert ends_within(child, timeout_s=20)


def ends_within(pid, timeout_s):
    """Whether a process that was killed is gone: it runs on until the kernel has come to it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def test_a_command_without_measure_has_its_output_cut():
    assert len(run("yes", timeout_s=1)[1]) == 1 << 20


def big_evidence():
    frames = tuple(Frame(f"f{n}", "/x.py", n, locals={"v": "x" * 100}) for n in range(100))
    threads = tuple(ThreadStack(f"t{n}", frames) for n in range(30))
    samples = (StackSample(threads, "py-spy"),) * 2
    return Evidence("watchdog", (Process("rank 0", "trainer", rank=0, stacks=samples),))


@pytest.mark.parametrize("max_bytes", [300_000, 100_000, 10_000])
def test_evidence_is_cut_to_size_and_says_so(max_bytes):
    text = fitting_json(big_evidence(), max_bytes)

    evidence = evidence_from_json(text)
    assert len(text.encode()) <= max_bytes
    assert evidence.gaps[-1].why == f"more than {max_bytes} bytes of evidence"
    assert evidence.processes[0].stacks[-1].threads[0].frames[0].function == "f0"


def test_evidence_that_fits_is_not_touched():
    assert evidence_from_json(fitting_json(big_evidence(), 10**8)) == big_evidence()


def test_files_and_folders_belong_to_the_user_alone(tmp_path):
    path = IncidentFolder(tmp_path / "job", "one", tmp_path / "s").write("raw/a.json", "x")

    assert path.read_text() == "x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_refused_write_goes_to_the_substitute_and_leaves_nothing_half(tmp_path):
    (tmp_path / "job").write_text("a file")
    folder = IncidentFolder(tmp_path / "job", "one", tmp_path / "s")

    path = folder.write("a.json", "x")

    assert path == tmp_path / "s" / "job" / "incidents" / "one" / "a.json"
    assert os.listdir(path.parent) == ["a.json"]
    assert folder.find("a.json") == path
    assert list(folder.refusals.values()) == ["Not a directory"]


def test_a_substitute_that_somebody_else_prepared_is_not_used(tmp_path):
    (tmp_path / "job").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "miles-watchdog-1").symlink_to(tmp_path / "elsewhere")
    folder = IncidentFolder(tmp_path / "job", "one", tmp_path / "miles-watchdog-1")

    with pytest.raises(NothingWrittenError, match="another user"):
        folder.write("a.json", "x")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_only_one_leads_and_another_one_follows_when_it_gives_up(tmp_path):
    first, second = Leadership(tmp_path), Leadership(tmp_path)

    assert first.take()
    assert not second.take()
    first.give_up()
    assert second.take()
    second.give_up()


LEADS = """
import sys
from pathlib import Path
from watchdog.incident.leader import Leadership
leadership = Leadership(Path(sys.argv[1]))
assert leadership.take()
print("ready", flush=True)
input()
"""


def test_a_leader_that_dies_is_followed(tmp_path, start):
    leader = start(LEADS, tmp_path)
    mine = Leadership(tmp_path)
    assert not mine.take()

    leader.kill()
    leader.wait(20)

    assert mine.take()
    mine.give_up()


def test_a_leader_without_a_sign_of_life_is_passed_over(tmp_path, start):
    start(LEADS, tmp_path)
    mine = Leadership(tmp_path)
    assert not mine.take()

    os.utime(tmp_path / "leader-1.lock", (0, 0))

    assert mine.take()
    mine.give_up()
