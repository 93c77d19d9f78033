"""Folders that the watchdog wrote are read back as what they say, once."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rules import stacks
from tests.rules.building import live, rank
from watchdog.cli.telling import write
from watchdog.diagnosis import diagnose
from watchdog.errors import UnusableInputError
from watchdog.evidence import Evidence, Frame, Process, StackSample, ThreadStack
from watchdog.findings import Diagnosis
from watchdog.intake import evidence_from_paths
from watchdog.serialization import evidence_to_json

LAUNCHER = (
    Frame("_invoke_run", "/v/torch/distributed/elastic/agent/server/api.py", 923),
    Frame("run", "/v/torch/distributed/elastic/agent/server/api.py", 745),
    Frame("<module>", "/v/bin/torchrun", 8),
)
READS = (Frame("read_all", "/job/hang.py", 10), Frame("sync", "/job/hang.py", 17))


def one_look(host: str, first_pid: int, taken_at_s: float = 100.0) -> Evidence:
    """Three ranks and their launcher: rank 1 reads files while the others are in a barrier."""
    looks = (taken_at_s, taken_at_s + 3)
    trainers = [on(rank(0, stacks.GLOO_BARRIER), host, first_pid, looks)]
    trainers.append(with_frames(Process("rank 1", "trainer", 1), READS, host, first_pid + 1, looks))
    trainers.append(on(rank(2, stacks.GLOO_BARRIER), host, first_pid + 2, looks))
    launcher = with_frames(Process("launcher", "launcher"), LAUNCHER, host, first_pid - 100, looks)
    return replace(live(*trainers, launcher, world_size=3), origin="attach")


def on(process: Process, host: str, pid: int, looks: tuple[float, ...]) -> Process:
    samples = tuple(replace(process.stacks[0], taken_at_s=time_s) for time_s in looks)
    return replace(process, host=host, pid=pid, stacks=samples)


def with_frames(
    process: Process, frames: tuple[Frame, ...], host: str, pid: int, looks: tuple[float, ...]
) -> Process:
    sample = StackSample((ThreadStack("MainThread", frames, pid),), "py-spy")
    return on(replace(process, status="running", stacks=(sample,)), host, pid, looks)


def written(evidence: Evidence, folder: Path) -> Diagnosis:
    """Leaves what `attach --output` leaves; what it found."""
    found = diagnose(evidence)
    write(evidence, found, folder)
    return found


def test_a_folder_that_attach_wrote_says_again_what_attach_said(tmp_path: Path) -> None:
    said = written(one_look("n0", 1001), tmp_path / "node-0")

    evidence = evidence_from_paths([tmp_path / "node-0"])

    assert diagnose(evidence).verdict == said.verdict
    assert said.verdict.culprits[0].where.startswith("read_all")
    assert sum("were not" in note for note in evidence.notes) == 1


def test_every_file_of_a_folder_of_ours_handed_over_by_name_says_the_same(tmp_path: Path) -> None:
    said = written(one_look("n0", 1001), tmp_path)

    evidence = evidence_from_paths(sorted(tmp_path.iterdir()))

    assert diagnose(evidence).verdict == said.verdict


def test_an_archive_of_a_folder_of_ours_says_the_same(tmp_path: Path) -> None:
    said = written(one_look("n0", 1001), tmp_path / "node-0")
    with tarfile.open(tmp_path / "node-0.tar", "w") as archive:
        archive.add(tmp_path / "node-0", "node-0")

    evidence = evidence_from_paths([tmp_path / "node-0.tar"])

    assert diagnose(evidence).verdict == said.verdict
    assert sum("were not read" in note for note in evidence.notes) == 1


def test_a_run_folder_is_read_by_the_evidence_of_its_incident(tmp_path: Path) -> None:
    incident = tmp_path / "run" / "incidents" / "weight_sync-0003"
    evidence = one_look("n0", 1001)
    said = written(evidence, incident)
    alone = replace(evidence.processes[1], host="", stacks=(), collectives=())
    (incident / "raw").mkdir()
    (incident / "raw" / "rank-1.json").write_text(
        evidence_to_json(Evidence("watchdog", (replace(alone, pid=7),)))
    )
    (incident / "summary.txt").write_text("[miles-watchdog] HUNG: rank 0 holds up 1 of 3 ranks\n")
    (incident / "on_stall.log").write_text("Process 1002: python\nThread 1002 (idle)\n  f (a:1)\n")
    (tmp_path / "run" / "ranks").mkdir()
    (tmp_path / "run" / "ranks" / "0.blackbox").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "run" / "syncs.jsonl").write_text('{"rank": 0, "duration_s": 1.0}\n')

    for handed_over in (incident, tmp_path / "run", tmp_path):
        read = evidence_from_paths([handed_over])

        assert diagnose(read).verdict == said.verdict
        assert read.gaps == ()


def test_of_the_incidents_of_one_run_the_newest_is_read_and_another_one_by_its_folder(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    newest = replace(one_look("n0", 1001, taken_at_s=900.0), collected_at_s=903.0)
    earlier = replace(one_look("n0", 1001, taken_at_s=100.0), collected_at_s=103.0)
    away = with_frames(earlier.processes[0], READS, "n0", 1001, (100.0, 103.0))
    earlier = replace(earlier, processes=(away, *earlier.processes[1:]))
    said = written(newest, run / "incidents" / "collective-0001")
    said_earlier = written(earlier, run / "incidents" / "weight_sync-0003")
    assert said.verdict != said_earlier.verdict

    read = evidence_from_paths([run])

    assert diagnose(read).verdict == said.verdict
    assert {s.taken_at_s for p in read.processes for s in p.stacks} == {900.0, 903.0}
    assert any("of 2 incidents of one run the newest was read" in note for note in read.notes)
    other = evidence_from_paths([run / "incidents" / "weight_sync-0003"])
    assert diagnose(other).verdict == said_earlier.verdict


def test_a_log_that_somebody_laid_beside_our_evidence_is_read(tmp_path: Path) -> None:
    written(one_look("n0", 1001), tmp_path)
    (tmp_path / "train.log").write_text("[rank1]: RuntimeError: no such shard\n")

    assert "no such shard" in evidence_from_paths([tmp_path]).log_events[0].text


def test_two_looks_at_one_job_are_one_job_and_in_order(tmp_path: Path) -> None:
    written(one_look("n0", 1001, taken_at_s=500.0), tmp_path / "later")
    written(one_look("n0", 1001, taken_at_s=100.0), tmp_path / "sooner")

    evidence = evidence_from_paths([tmp_path / "later", tmp_path / "sooner"])

    assert [p.key for p in evidence.processes] == ["rank 0", "rank 1", "rank 2", "launcher"]
    assert [s.taken_at_s for s in evidence.processes[1].stacks] == [100.0, 103.0, 500.0, 503.0]


def test_the_folders_of_two_nodes_are_one_job_with_two_launchers(tmp_path: Path) -> None:
    job = one_look("n0", 1001)
    *_, launcher = job.processes
    here = replace(job, processes=(*job.processes[:2], launcher))
    there = replace(
        job,
        processes=(replace(job.processes[2], host="n1"), replace(launcher, host="n1")),
    )
    written(here, tmp_path / "node-0")
    written(there, tmp_path / "node-1")

    evidence = evidence_from_paths([tmp_path / "node-0", tmp_path / "node-1"])

    assert sorted((p.role, p.host) for p in evidence.processes) == [
        ("launcher", "n0"),
        ("launcher", "n1"),
        ("trainer", "n0"),
        ("trainer", "n0"),
        ("trainer", "n1"),
    ]
    assert [c.process for c in diagnose(evidence).verdict.culprits] == ["rank 1"]


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_a_report_alone_is_refused_and_the_evidence_asked_for(tmp_path: Path, name: str) -> None:
    written(one_look("n0", 1001), tmp_path)

    with pytest.raises(UnusableInputError, match=r"hand over the evidence\.json"):
        evidence_from_paths([tmp_path / name])
