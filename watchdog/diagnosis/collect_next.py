"""The commands that would settle what is open."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.findings import Finding, Verdict
from watchdog.situation import Situation
from watchdog.verdict import own_words
from watchdog.verdict.judgement import names_of, rank_range
from watchdog.waits.process import is_unheard

_WHICH_RANK = (
    "Which rank each dump is of: name the files by rank (`rank1.txt`), or add a log that tells the"
    " pids of the ranks"
)
_ENGINE_WORDS = ("rollout", "sglang", "vllm", "colocate", "engine")


def collect_next(
    situation: Situation, verdict: Verdict, causes: tuple[Finding, ...]
) -> tuple[str, ...]:
    """What to run next, most telling first; empty where the cause is confirmed."""
    if verdict.state == "healthy":
        return ()
    if causes and causes[0].confidence == "confirmed" and verdict.state in ("hung", "crashed"):
        return ()
    told = own_words.last_words(situation)
    if told is not None and "report" in told.fields:
        folder = told.fields["report"].rpartition("/")[0]
        return (f"What the watchdog of the run saw: `miles-watchdog diagnose {folder}`",)
    asked = [_WHICH_RANK] if _ranks_are_unknown(situation) else []
    gone = [c.rank for c in verdict.culprits if c.rank is not None and verdict.state == "crashed"]
    gone = [rank for rank in gone if rank in verdict.unaccounted]
    if gone:
        asked.append(
            f"How {rank_range(gone)} ended: the exit status in the launcher's log, the last lines"
            " of its own log, and `dmesg -T` of its host"
        )
    missing = [rank for rank in verdict.unaccounted if rank not in gone]
    if missing:
        where = f"Stacks of {rank_range(missing)}: on their nodes run"
        if situation.evidence.origin == "attach":
            where += (
                " `miles-watchdog attach --output DIR`, then `miles-watchdog diagnose` on all"
                " folders together; or, without it,"
            )
        asked.append(
            f"{where}"
            " `for p in $(pgrep -f 'ray::.*Train|torchrun"
            "|train'); do py-spy dump --native --pid $p; done`"
        )
    unheard = tuple(p for p in _suspects(situation, verdict) if is_unheard(p))
    asked += _look_at_hosts(unheard)
    heard = [p for p in _suspects(situation, verdict) if p.pid and p not in unheard]
    if verdict.state == "crashed":
        # Of whom nothing but the error is known is no more: nobody can look at it again.
        heard = [p for p in heard if p.stacks or p.position is not None]
    asked += [_second_look(p) for p in heard if len(p.stacks) < 2]
    asked += [_native(p) for p in heard if not _has_native(p)]
    if not situation.evidence.log_events:
        asked.append(
            "The logs of all ranks, engines and the driver, whole: the earliest error decides"
        )
    if not situation.evidence.flags and not _is_launch_known(situation):
        asked.append("The launch command, and the arguments as the run itself printed them")
    if not situation.engines and _may_have_engines(situation):
        asked.append(
            "Stacks of the rollout engines: `for p in $(pgrep -f 'sglang::|VLLM::|vllm serve'); do"
            " py-spy dump --native --pid $p; done`, and the last 200 lines of every engine's log"
        )
    return tuple(dict.fromkeys(asked))


def _ranks_are_unknown(situation: Situation) -> bool:
    """Whether there are stacks of several trainers, and of none of them is its rank known."""
    trainers = [p for p in situation.processes.values() if p.role == "trainer" and p.stacks]
    is_known = any(process.rank is not None for process in trainers)
    return situation.evidence.origin == "files" and len(trainers) > 1 and not is_known


def _may_have_engines(situation: Situation) -> bool:
    """Whether engines can exist: a job that was looked at as a whole would have shown them."""
    evidence = situation.evidence
    said = [flag.name for flag in evidence.flags]
    if evidence.origin != "attach" and not evidence.stall:
        if not (said or evidence.log_events):
            return True
        said += [f"{event.kind} {event.text}" for event in evidence.log_events]
    return any(word in text.lower() for text in said for word in _ENGINE_WORDS)


def _is_launch_known(situation: Situation) -> bool:
    """Whether the command lines of a job that was looked at hold its arguments."""
    return situation.evidence.origin == "attach" and any(
        process.command for process in situation.evidence.processes
    )


def _suspects(situation: Situation, verdict: Verdict) -> list[Process]:
    named = [
        situation.processes[c.process] for c in verdict.culprits if c.process in situation.processes
    ]
    rank_0 = situation.trainer(0)
    suspects = named or ([rank_0] if rank_0 is not None else list(situation.trainers[:1]))
    return [process for process in suspects if situation.wait(process).kind != "dead"]


def _look_at_hosts(unheard: tuple[Process, ...]) -> list[str]:
    hosts = dict.fromkeys(process.host for process in unheard)
    return [
        f"What {names_of(tuple(p for p in unheard if p.host == host))} do:"
        f" on {host or 'their hosts'} run `miles-watchdog attach --output DIR`,"
        " then `miles-watchdog diagnose` on its folder and this one together"
        for host in hosts
    ]


def _second_look(process: Process) -> str:
    look = f"A second sample of {process.key}, at least 30 s after the first:"
    if not process.stacks:
        look = f"Two samples of {process.key}, at least 30 s apart:"
    pid = process.pid
    return f"{look} `py-spy dump --pid {pid}; cat /proc/{pid}/io /proc/{pid}/wchan`"


def _native(process: Process) -> str:
    return f"Native frames of {process.key}: `py-spy dump --native --pid {process.pid}`"


def _has_native(process: Process) -> bool:
    return any(f.native for sample in process.stacks for t in sample.threads for f in t.frames)
