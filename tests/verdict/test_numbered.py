"""What ranks entered at one number, as their own log lines say."""

from __future__ import annotations

from pathlib import Path

from watchdog.diagnosis import diagnose
from watchdog.findings import Diagnosis
from watchdog.intake import evidence_from_paths


def diagnosis_of(path: Path, *lines: str) -> Diagnosis:
    (path / "job.log").write_text("\n".join(lines) + "\n")
    return diagnose(evidence_from_paths([path]))


def time_out(rank: int, op: str, size: int, number: int = 77, group: str = "0(default_pg)") -> str:
    head = f"[rank{rank}]:[E501 10:00:0{rank}.1 ProcessGroupNCCL.cpp:1]"
    return (
        f"{head} [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL("
        f"SeqNum={number}, OpType={op}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran"
        f" for 600010 milliseconds before timing out.\n"
        f"{head} [PG ID 0 PG GUID {group} Rank {rank}]  failure detected by watchdog at work"
        f" sequence id: {number} PG status: last enqueued work: {number}, last completed work:"
        f" {number - 1}"
    )


def test_the_rank_with_another_operation_at_the_same_number_is_named(tmp_path: Path) -> None:
    found = diagnosis_of(
        tmp_path,
        time_out(0, "ALLREDUCE", 1),
        time_out(1, "_ALLGATHER_BASE", 512),
        time_out(2, "ALLREDUCE", 1),
    )

    assert [c.rank for c in found.verdict.culprits] == [1]
    assert found.causes[0].cause_class == "collective_mismatch"


def test_the_same_number_in_two_groups_is_no_mismatch(tmp_path: Path) -> None:
    found = diagnosis_of(
        tmp_path,
        time_out(0, "ALLREDUCE", 1, group="11(tp)"),
        time_out(1, "ALLREDUCE", 1, group="11(tp)"),
        time_out(2, "_ALLGATHER_BASE", 512, group="12(tp)"),
        time_out(3, "_ALLGATHER_BASE", 512, group="12(tp)"),
    )

    assert [cause.cause_class for cause in found.causes] != ["collective_mismatch"]
    assert found.verdict.culprits == ()


def test_sizes_of_a_gather_with_lists_may_differ(tmp_path: Path) -> None:
    found = diagnosis_of(
        tmp_path,
        *(time_out(rank, "ALLGATHER", 100 + rank) for rank in range(3)),
    )

    assert all(cause.cause_class != "collective_mismatch" for cause in found.causes)


def test_torchs_own_comparison_names_the_odd_rank_whoever_wrote_first(tmp_path: Path) -> None:
    def says(rank: int, other: int, shapes: dict[int, str]) -> str:
        told = [
            f"Rank {r} is running collective: CollectiveFingerPrint(SequenceNumber=9,"
            f" OpType=ALLREDUCE, TensorShape=[{shapes[r]}], TensorDtypes=Float)"
            for r in (rank, other)
        ]
        return (
            f"[rank{rank}]: Traceback (most recent call last):\n"
            f'[rank{rank}]:   File "/job/loss.py", line 3, in loss\n'
            f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks."
            f" {told[0]}, but {told[1]}."
        )

    shapes = {0: "", 1: "", 2: "", 3: "8192"}
    found = diagnosis_of(tmp_path, *(says(r, 3 if r != 3 else 0, shapes) for r in range(4)))

    assert found.verdict.state == "crashed"
    assert [c.rank for c in found.verdict.culprits] == [3]
    assert found.causes[0].cause_class == "collective_mismatch"
