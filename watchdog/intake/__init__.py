"""Reads what people have in hand after a hang, whatever it is called, into one evidence.

Files are recognised by content. A file is either one thing as a whole (`DOCUMENTS`: JSON, a
script, a configuration) or lines, among which blocks (`BLOCKS`: dumps, tables, tracebacks) and
known log lines (`log_lines`) are found. All three give parts; in the end ranks, engines, hosts
and pids are tied together over all files (`identity`), and one `Evidence` is built (`assemble`).

Nothing in a file is ever executed, nothing is unpacked to disk, and whatever a file holds, time
and memory stay bounded: what cannot be used becomes a gap that says why, and the rest is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from watchdog.counting import counted
from watchdog.errors import UnusableInputError
from watchdog.evidence import Evidence
from watchdog.intake.assemble import evidence_of
from watchdog.intake.blocks import (
    BlockKind,
    actor_list,
    actor_table,
    argument_lines,
    engine_metrics,
    environment_dump,
    faulthandler_text,
    gdb_text,
    gpu_table,
    own_summary,
    package_list,
    pod_table,
    proc_counters,
    process_table,
    pyspy_text,
    pystack_text,
    ras_text,
    socket_table,
    task_table,
    torchrun_summary,
    traceback_text,
)
from watchdog.intake.documents import (
    DocumentKind,
    arguments_dump,
    configuration,
    flight_recorder,
    json_arguments,
    launch_script,
    own_evidence,
    pyspy_json,
    runtime_env,
)
from watchdog.intake.inferences import infer
from watchdog.intake.own_folders import without_retold
from watchdog.intake.parts import Parts
from watchdog.intake.reading import Reader
from watchdog.intake.sources import Progress, Source, sources_of

DOCUMENTS: tuple[DocumentKind, ...] = (
    own_evidence,
    pyspy_json,
    flight_recorder,
    runtime_env,
    launch_script,
    arguments_dump,
    configuration,
    json_arguments,
)
BLOCKS: tuple[BlockKind, ...] = (
    own_summary,
    faulthandler_text,
    gdb_text,
    pystack_text,
    pyspy_text,
    traceback_text,
    torchrun_summary,
    proc_counters,
    process_table,
    pod_table,
    gpu_table,
    socket_table,
    engine_metrics,
    actor_table,
    actor_list,
    task_table,
    ras_text,
    argument_lines,
    package_list,
    environment_dump,
)


def evidence_from_paths(paths: Sequence[str | Path], progress: Progress | None = None) -> Evidence:
    """Read files, folders and archives into one evidence.

    Args:
        paths: What was handed over, at least one; names mean nothing but hints on ranks.
        progress: Hears how far the reading is.

    Returns:
        Evidence of origin `files`, or of a tool of ours where its evidence was among the files.
        `gaps` lists what could not be used and why, `notes` how ranks were inferred.

    Raises:
        UnusableInputError: A path does not exist, or nothing in any file was understood; the
            message names the files.
    """
    parts = Parts()
    sources = without_retold(sources_of(paths, parts), parts)
    Reader(parts, DOCUMENTS, BLOCKS, progress).read_all(sources)
    if parts.own_reports:
        _leave_reports(parts)
    if not parts.usable:
        names = ", ".join(str(path) for path in paths[:5])
        raise UnusableInputError(f"no file was recognised in {names} ({_why(sources, parts)})")
    infer(parts)
    return evidence_of(parts)


def _leave_reports(parts: Parts) -> None:
    """Say once that reports of ours were not read.

    Raises:
        UnusableInputError: There is nothing else.
    """
    names = ", ".join(parts.own_reports[:5])
    if not parts.usable:
        raise UnusableInputError(
            f"{names}: a report of the watchdog, which tells what was found and is no evidence; "
            "hand over the evidence.json that lies beside it"
        )
    parts.add_note(f"{names}: reports of the watchdog, which are no evidence, were not read")


def _why(sources: Sequence[Source], parts: Parts) -> str:
    """What was looked at in vain."""
    gaps = [f"{gap.what}: {gap.why}" for gap in parts.gaps[:5]]
    if not sources:
        return "; ".join(gaps) or "there is no file in it"
    if not any(source.size for source in sources):
        empty = "is empty" if len(sources) == 1 else f"all {len(sources)} files are empty"
        return "; ".join([empty, *gaps])
    them = "it" if len(sources) == 1 else "them"
    looked = f"{counted(len(sources), 'file')} looked at, nothing known in {them}"
    return "; ".join([looked, *gaps])
