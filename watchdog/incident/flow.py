"""What happens at a stall, in this order: capture, gather, diagnose, report, command, end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from watchdog import capture as capture_package
from watchdog import masking
from watchdog.capture import SAMPLE_SOURCES, SOURCES, python_stacks
from watchdog.capture.target import Part, Source, Target, combined
from watchdog.discovery.jobs import Member
from watchdog.discovery.run_processes import processes_of_run
from watchdog.evidence import Evidence, Gap, StackSample
from watchdog.exchange.meeting import Outcome
from watchdog.findings import Diagnosis, Verdict
from watchdog.guest.notices import notice
from watchdog.incident import abort, on_stall, other_nodes, rank_evidence, report, suspects
from watchdog.incident.folder import RAW, REPORT, IncidentFolder, NothingWrittenError
from watchdog.incident.leader import Leadership
from watchdog.incident.members import SILENT_AFTER_S, members_of
from watchdog.incident.merge import Gathering
from watchdog.incident.neighbours import Neighbours
from watchdog.incident.size import fitting_json
from watchdog.run.one_voice import NO_MORE_INCIDENTS, is_first_to_say
from watchdog.sentinel import abort_order
from watchdog.settings import Settings
from watchdog.timing.stall_context import StallContext

_POLL_S = 0.2
_TURN_S = 0.05
_LONGEST_TURN_S = 1.0
_PATIENCE_S = 60.0
_BETWEEN_SAMPLES_S = 1.0


def _diagnose(evidence: Evidence) -> Diagnosis:
    from watchdog.diagnosis import diagnose

    return diagnose(evidence)


def _capture(
    targets: Sequence[Target], sources: Sequence[Source], timeout_s: float
) -> dict[int, Part]:
    return capture_package.capture(targets, sources, timeout_s=timeout_s)


def _native(pids: Sequence[int]) -> dict[int, StackSample | Gap]:
    return python_stacks.stacks(pids, native=True, timeout_s=3.0)


@dataclass(frozen=True)
class Seams:
    """Everything that reaches outside, so that a test can stand in for it.

    Attributes:
        capture: Reads processes: targets, sources, time for all (s).
        find_processes: The job's other processes: run, pids of the ranks, host, roster.
        meet: Brings other hosts' evidence: stall, evidence of this host, time (s), sleep.
        native: Stacks with native frames, by pid.
        diagnose: Evidence to diagnosis.
        notice: Says lines on stderr.
        sleep: Waits so many seconds.
        end_this_process: Does not return in earnest.
        substitute: Root of the folder that is used where the run's own refuses.
    """

    capture: Callable[[Sequence[Target], Sequence[Source], float], dict[int, Part]] = _capture
    find_processes: Callable[[str, list[int], str, str], tuple[Member, ...]] = processes_of_run
    meet: Callable[[StallContext, Evidence, float, Callable[[float], None]], Outcome] = (
        other_nodes.met
    )
    native: Callable[[Sequence[int]], dict[int, StackSample | Gap]] = _native
    diagnose: Callable[[Evidence], Diagnosis] = _diagnose
    notice: Callable[[str], None] = notice
    sleep: Callable[[float], None] = time.sleep
    end_this_process: Callable[[], None] = abort.end_this_process
    substitute: Path | None = None


@dataclass(frozen=True)
class IncidentResult:
    """What became of a stall, from the side of this rank.

    Attributes:
        is_leader: Whether this rank wrote the report.
        report: Path of `report.json`, whoever wrote it; `None` where there is none.
        folder: Where the incident lies; `None` where nothing could be written.
        evidence: The job's evidence for the leader, this rank's own otherwise.
    """

    is_leader: bool
    report: Path | None
    folder: Path | None
    evidence: Evidence = field(repr=False)


def first_sample(context: StallContext, *, seams: Seams | None = None) -> Part:
    """The cheap look before the deadline; `handle_stall` gets it back in its context.

    Never raises.
    """
    target = Target(context.identity.pid, _name(context))
    return (seams or Seams()).capture([target], SAMPLE_SOURCES, 3.0)[target.pid]


def handle_stall(
    context: StallContext, *, settings: Settings | None = None, seams: Seams | None = None
) -> IncidentResult:
    """Turn a stall into a report, and end the rank if the settings say so.

    Runs on a thread of the watchdog in every rank that noticed the stall. Takes seconds, never
    touches CUDA or the process group, and does not depend on any other rank: whichever is able
    to writes the report for all.

    Args:
        context: The stall as this rank saw it.
        settings: Instead of those in the context.
        seams: Stand-ins for tests.
    """
    if settings is not None:
        context = replace(context, settings=settings)
    masking.hide_names_with(context.settings.redact)
    return _Stalled(context, seams or Seams()).handled()


def node_evidence(context: StallContext, *, seams: Seams | None = None) -> Evidence:
    """Evidence of this host for a stall that another one noticed; nothing is written.

    Args:
        context: The stall as far as it is known; its identity is this process.
        seams: Stand-ins for tests.
    """
    return _Stalled(context, seams or Seams()).node_evidence()


class _Stalled:
    def __init__(self, context: StallContext, seams: Seams) -> None:
        self._context = context
        self._seams = seams
        self._began_s, self._began_wall_s = time.monotonic(), time.time()
        self._folder = IncidentFolder(context.run_folder, context.incident_id, seams.substitute)
        # As long as a quick user is willing to wait, as short as slow ranks allow.
        self._wait_s = min(10.0, max(3.0, 0.05 * context.deadline_s))
        self._max_bytes = context.settings.max_incident_mb * 1_000_000
        self._neighbours = Neighbours(context, seams.capture, seams.find_processes)
        self._name = _name(context)
        self._stall = f"{context.section} {context.index}"

    def handled(self) -> IncidentResult:
        settings = self._context.settings
        if self._folder.is_one_too_many(settings.max_incidents):
            if is_first_to_say(NO_MORE_INCIDENTS, self._context.run_folder):
                self._seams.notice(
                    f"{self._stall} stalled; neither it nor a later one is recorded, the run has "
                    f"{settings.max_incidents} incidents already (MILES_WATCHDOG_MAX_INCIDENTS)"
                )
            result = IncidentResult(False, None, None, Evidence("watchdog"))
        else:
            result = self._recorded()
        if settings.abort_after_s is not None:
            self._abort(settings.abort_after_s, result)
        return result

    def _recorded(self) -> IncidentResult:
        own = self._own_evidence()
        self._deliver(own)
        leadership = self._leadership()
        if leadership is None:
            return self._follow(own)
        try:
            return self._lead(own, leadership)
        finally:
            leadership.give_up()

    def node_evidence(self) -> Evidence:
        self._neighbours.look()
        own = replace(self._own_evidence(), stall=None)
        gathering = Gathering(
            self._context, self._folder, own, self._seams.capture, self._seams.sleep
        )
        # Who is not in the section is looked at from outside, at once.
        return self._neighbours.added_to(gathering.evidence(0.0), sleep=self._seams.sleep)

    def _own_evidence(self) -> Evidence:
        self._wait_since_first_sample()
        target = Target(self._context.identity.pid, self._name, self._traceback_file())
        part = self._seams.capture([target], SOURCES, max(3.0, self._wait_s - 1.0))[target.pid]
        before = self._context.first_sample
        if isinstance(before, Part):
            # Of what the first look could not have, the second one says why as well.
            part = combined([replace(before, gaps=()), part])
        return rank_evidence.of_this_process(self._context, part)

    def _wait_since_first_sample(self) -> None:
        """Let so much time pass that movement would show; on a busy machine the first is late."""
        first = self._context.first_sample
        activity = first.activity if isinstance(first, Part) else ()
        taken_at_s = activity[-1].taken_at_s if activity else None
        left_s = (taken_at_s or 0.0) + _BETWEEN_SAMPLES_S - time.time()
        if 0 < left_s <= _BETWEEN_SAMPLES_S:
            self._seams.sleep(left_s)

    def _traceback_file(self) -> Path | None:
        box = self._context.blackbox
        if box is None:
            return None
        return (self._context.run_folder / "ranks" / box.name).with_suffix(".faulthandler")

    def _deliver(self, own: Evidence) -> None:
        identity = self._context.identity
        name = f"pid-{identity.pid}" if identity.rank is None else f"rank-{identity.rank}"
        share = self._max_bytes // 2 // max(1, identity.world_size or 1)
        try:
            self._folder.write(f"{RAW}/{name}.json", fitting_json(own, share))
        except NothingWrittenError as error:
            self._seams.notice(f"this rank's evidence cannot be written: {error}")

    def _leadership(self) -> Leadership | None:
        """Wait until this rank leads (its lock), or until there is a report (`None`)."""
        try:
            leadership = Leadership(self._folder.make())
        except OSError:
            return Leadership(self._folder.place)  # nobody can lock anything: each for itself
        self._seams.sleep(self._turn_s())
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            if self._folder.find(REPORT) is not None:
                return None
            if _taken(leadership):
                # Between the look and the lock the last leader may have finished.
                return leadership if self._folder.find(REPORT) is None else None
            self._seams.sleep(_POLL_S)
        return None

    def _turn_s(self) -> float:
        """Let lower ranks go first, so that the report is usually the lowest one's."""
        rank = self._context.identity.rank
        local = members_of(self._context)
        place = sum(other < rank for other in local) if rank is not None else len(local)
        return min(_TURN_S * place, _LONGEST_TURN_S)

    def _follow(self, own: Evidence) -> IncidentResult:
        """Leave the word to the leader; where it has none, one of the others says that."""
        written = self._folder.find(REPORT)
        if written is not None:
            return IncidentResult(False, written, written.parent, own)
        if is_first_to_say("no-report", self._folder.place):
            self._seams.notice(
                f"{self._stall} is stalled in {self._name}, and no rank wrote a report "
                f"within {_PATIENCE_S:.0f} s; what the ranks saw: {self._folder.place / RAW}"
            )
        return IncidentResult(False, None, None, own)

    def _lead(self, own: Evidence, leadership: Leadership) -> IncidentResult:
        gathering = Gathering(
            self._context, self._folder, own, self._seams.capture, self._seams.sleep,
            leadership.sign_of_life,
        )  # fmt: skip
        self._neighbours.look()
        evidence = gathering.evidence(self._wait_s)
        leadership.sign_of_life()
        outcome = self._of_the_whole_job(evidence, leadership)
        if not outcome.leads and self._folder.find(REPORT) is not None:
            return self._follow(own)
        if abort.is_ordered(self._context):
            return self._dropped(own)
        evidence, diagnosis = self._diagnosed(outcome.evidence)
        more = suspects.with_native_frames(
            evidence, diagnosis.verdict, wanted=self._context.settings.native,
            host=self._context.identity.host, read=self._seams.native,
        )  # fmt: skip
        if more is not None:
            evidence, diagnosis = self._diagnosed(more)
        written = report.write(
            evidence, diagnosis, self._context, self._folder,
            max_bytes=self._max_bytes // 2, started_at_s=self._began_wall_s,
        )  # fmt: skip
        if outcome.leads:
            self._seams.notice(written.summary)
            self._run_command(written.markdown)
        else:
            self._seams.notice(f"another host wrote the report; also here: {written.json}")
        folder = written.json.parent if written.json else None
        return IncidentResult(True, written.json, folder, evidence)

    def _dropped(self, own: Evidence) -> IncidentResult:
        """Report nothing: what would be seen now is the watchdog's own ending of the run."""
        self._seams.notice(
            f"{self._stall} is stalled in {self._name} as well; not reported, the run "
            "is being ended for another stall"
        )
        self._folder.remove()
        return IncidentResult(False, None, None, own)

    def _of_the_whole_job(self, evidence: Evidence, leadership: Leadership) -> Outcome:
        evidence = self._neighbours.added_to(evidence, sleep=self._seams.sleep)

        def sleep(seconds: float) -> None:
            leadership.sign_of_life()
            self._seams.sleep(seconds)

        return self._seams.meet(self._context, evidence, self._wait_s, sleep)

    def _diagnosed(self, evidence: Evidence) -> tuple[Evidence, Diagnosis]:
        try:
            return evidence, self._seams.diagnose(evidence)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            failed = Diagnosis(Verdict("unknown", f"the diagnosis itself failed: {why}"))
            return replace(evidence, gaps=(*evidence.gaps, Gap("diagnosis", why))), failed

    def _run_command(self, markdown: Path | None) -> None:
        command = self._context.settings.on_stall
        if not command or markdown is None:
            return
        ended, output = on_stall.run_command(command, incident=markdown.parent, report=markdown)
        self._seams.notice(ended)
        try:
            self._folder.write("on_stall.log", output.decode(errors="replace"))
        except NothingWrittenError:
            return

    def _abort(self, abort_after_s: float, result: IncidentResult) -> None:
        end_at_s = self._began_s + abort_after_s
        while (left_s := end_at_s - time.monotonic()) > 0:
            if not abort.is_still_stalled(self._context):
                break
            self._seams.sleep(min(left_s, 0.5))
        if not abort.is_still_stalled(self._context):
            # What the end of the other ranks broke off did not go on.
            is_broken_off = abort.is_ordered(self._context)
            if not is_broken_off and is_first_to_say("went-on", self._folder.place):
                how = abort.how_it_ended(self._context)
                self._seams.notice(f"{self._stall} {how}: who is out of it is not ended")
            return
        why = "MILES_WATCHDOG_ABORT_AFTER"
        # A launcher that sees one rank end ends the first as well: the order comes before that.
        is_first = self._is_first_of_host() or not abort.is_ordered_soon(
            self._context, sleep=self._seams.sleep
        )
        if is_first or self._context.identity.rank is None:
            why += f"={abort_after_s:g} s after the stall; report: {result.report or 'none'}"
        self._seams.notice(abort.ending_words(self._context.identity, why))
        if is_first:
            self._end_the_others()
        self._seams.end_this_process()

    def _end_the_others(self) -> None:
        """Have every rank of the job end itself, then end who cannot, and the engines."""
        if (written := self._folder.find(REPORT)) is not None:
            abort.note(written.parent, self._context.identity.rank, self._began_s)
        engines = self._neighbours.engines()
        who = f"{self._name} ({self._stall} is stalled)"
        if self._context.blackbox is not None:
            abort_order.order(self._context.blackbox.parent, engines, who)
        other_nodes.order_abort(self._context, who)
        others = [one for one in members_of(self._context).values() if one.pid != os.getpid()]
        ended = abort.end_others(others, sleep=self._seams.sleep)
        if ended:
            self._seams.notice(
                f"ended rank {', '.join(map(str, ended))} by SIGKILL: did not end itself"
            )
        if abort.end_processes(engines, sleep=self._seams.sleep):
            self._seams.notice("ended the engines of the run")

    def _is_first_of_host(self) -> bool:
        """Whether no lower rank of this host is able to end those that cannot end themselves."""
        own = self._context.identity.rank
        if own is None:
            return False
        able = [
            one.rank
            for one in members_of(self._context).values()
            if one.is_same_process
            and one.heartbeat_age_s < SILENT_AFTER_S
            and self._folder.find(f"{RAW}/rank-{one.rank}.json") is not None
        ]
        return min([*able, own]) == own


def _taken(leadership: Leadership) -> bool:
    try:
        return leadership.take()
    except OSError:
        return True  # no lock can be made: each for itself, files are replaced in one step


def _name(context: StallContext) -> str:
    identity = context.identity
    return rank_evidence.key_of(identity.rank, identity.host, identity.pid)
