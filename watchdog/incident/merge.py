"""One evidence of the whole job: what the ranks delivered, and what is seen of the silent ones."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from watchdog.capture import SAMPLE_SOURCES, SOURCES
from watchdog.capture.target import Part, Source, Target, combined
from watchdog.errors import UnreadableEvidenceError
from watchdog.evidence import Evidence, Process, Stall
from watchdog.incident import rank_evidence
from watchdog.incident.folder import RAW, IncidentFolder
from watchdog.incident.members import Member, members_of
from watchdog.sentinel.leavings import ENDING_SUFFIX
from watchdog.serialization import evidence_from_json
from watchdog.timing.stall_context import StallContext

Capture = Callable[[Sequence[Target], Sequence[Source], float], dict[int, Part]]

_POLL_S = 0.1
_BETWEEN_SAMPLES_S = 1.0
_OTHER_HOSTS_S = 1.0


@dataclass
class Gathering:
    """What the leader collects of the other ranks.

    Attributes:
        context: The stall, as the leader saw it.
        folder: Where the ranks deliver.
        own: The leader's evidence, in case that it could not be written.
        capture: Reads processes of this host from outside: targets, sources, time for all (s).
        sleep: Waits so many seconds.
        sign_of_life: Called every round.
    """

    context: StallContext
    folder: IncidentFolder
    own: Evidence
    capture: Capture
    sleep: Callable[[float], None] = time.sleep
    sign_of_life: Callable[[], None] = lambda: None
    _silent: dict[int, str] = field(default_factory=dict)
    _samples: dict[int, list[Part]] = field(default_factory=dict)
    _last_look_s: float = 0.0
    _began_s: float = field(default_factory=time.monotonic)

    def evidence(self, wait_s: float) -> Evidence:
        """Wait for the others, look at the silent ones, and merge.

        Returns at once when every rank that can deliver has done so.

        Args:
            wait_s: How long to wait at most (s); looking at silent ranks comes on top.
        """
        deadline_s = time.monotonic() + wait_s
        while True:
            self.sign_of_life()
            present = members_of(self.context)
            delivered = self._delivered()
            missing = {rank: one for rank, one in present.items() if rank not in delivered}
            self._look_at_silent(missing)
            waiting = set(missing) - set(self._silent)
            if not waiting and self._all_spoken_for(present, delivered):
                break
            if time.monotonic() >= deadline_s:
                break
            self.sleep(_POLL_S)
        for rank in set(missing) - set(self._silent):
            self._silent[rank] = f"it delivered nothing within {wait_s:g} s"
        self._look_again(missing)
        return self._merged(delivered, missing)

    def _all_spoken_for(self, present: dict[int, Member], delivered: dict[int, Evidence]) -> bool:
        """Whether no rank is expected beyond those that left a box or delivered."""
        if len(set(present) | set(delivered)) >= (self.context.identity.world_size or 0):
            return True
        # The rest of the job is on other hosts. One sign of them: the folder is shared.
        hosts = {one.host for one in present.values()}
        hosts |= {evidence.processes[0].host for evidence in delivered.values()}
        is_shared = bool(hosts - {self.context.identity.host})
        return not is_shared and time.monotonic() - self._began_s > _OTHER_HOSTS_S

    def _delivered(self) -> dict[int, Evidence]:
        found: dict[int, Evidence] = {}
        for path in self.folder.files(f"{RAW}/rank-*.json"):
            evidence = _read(path)
            if evidence is not None and evidence.processes[0].rank is not None:
                found.setdefault(evidence.processes[0].rank, evidence)
        own_rank = self.context.identity.rank
        if own_rank is not None:
            found[own_rank] = self.own
        return found

    def _look_at_silent(self, missing: dict[int, Member]) -> None:
        """First look at those of whom it is clear that they will not speak."""
        place = (self.context.section, self.context.index)
        newly = {rank: why for rank, one in missing.items() if (why := one.why_silent(*place))}
        newly = {rank: why for rank, why in newly.items() if rank not in self._silent}
        if newly:
            self._silent |= newly
            self._look([missing[rank] for rank in newly], SAMPLE_SOURCES)

    def _look_again(self, missing: dict[int, Member]) -> None:
        """The whole look, far enough from the first one that movement would show."""
        silent = [one for rank, one in missing.items() if one.is_local]
        if not silent:
            return
        if fresh := [one for one in silent if one.rank not in self._samples]:
            self._look(fresh, SAMPLE_SOURCES)
        left_s = self._last_look_s + _BETWEEN_SAMPLES_S - time.monotonic()
        if left_s > 0 and any(one.is_same_process for one in silent):
            self.sleep(left_s)
        self._look(silent, SOURCES)

    def _look(self, silent: Iterable[Member], sources: Sequence[Source]) -> None:
        self._last_look_s = time.monotonic()
        targets = [
            Target(one.pid, f"rank {one.rank}", _traceback_file(self.context.run_folder, one))
            for one in silent
            if one.is_local
        ]
        for target, part in zip(
            targets, self.capture(targets, sources, 5.0).values(), strict=False
        ):
            rank = int(target.name.removeprefix("rank "))
            self._samples.setdefault(rank, []).append(part)

    def _merged(self, delivered: dict[int, Evidence], missing: dict[int, Member]) -> Evidence:
        present = members_of(self.context)
        processes = [
            _as_it_is_now(evidence.processes[0], present.get(rank))
            for rank, evidence in delivered.items()
        ]
        events = [event for evidence in delivered.values() for event in evidence.log_events]
        for rank, one in missing.items():
            part = _without_doubles(self._samples.get(rank, []))
            if one.why_gone():
                part = replace(part, status="dead", status_detail=_ending(one, part))
            processes.append(rank_evidence.of_silent_member(one, part, self._silent[rank]))
            events += part.log_events
        own = self.own
        first = [own, *(delivered[rank] for rank in sorted(delivered))]
        return replace(
            own,
            processes=tuple(sorted(processes, key=_order)),
            collected_at_s=time.time(),
            stall=_stall(own, delivered.values()),
            flags=next((each.flags for each in first if each.flags), ()),
            log_events=tuple(events),
            gaps=tuple(gap for each in delivered.values() for gap in each.gaps),
        )


def _as_it_is_now(process: Process, member: Member | None) -> Process:
    """A rank that delivered and was killed since is dead."""
    if member is None or not member.why_gone():
        return process
    return replace(process, status="dead", status_detail="it ended after it had delivered")


def _order(process: Process) -> tuple[bool, int, str]:
    return (process.rank is None, process.rank or 0, process.key)


def _stall(own: Evidence, delivered: Iterable[Evidence]) -> Stall | None:
    stalls = [each.stall for each in delivered if each.stall is not None]
    if own.stall is None:
        return None
    ranks = {rank for stall in (own.stall, *stalls) for rank in stall.noticed_by}
    waited_s = max(stall.waited_s for stall in (own.stall, *stalls))
    return replace(own.stall, waited_s=waited_s, noticed_by=tuple(sorted(ranks)))


def _without_doubles(parts: Sequence[Part]) -> Part:
    whole = combined(parts)
    return replace(whole, gaps=tuple(dict.fromkeys(whole.gaps)))


def _ending(member: Member, part: Part) -> str:
    if member.reading.exited:
        return "the process ended on its own"
    # The sentinel was there when it ended, and wrote down how.
    try:
        ending = json.loads(member.path.resolve().with_suffix(ENDING_SUFFIX).read_bytes())
        if ending["ticks"] == member.reading.identity.get("pid_started_ticks"):
            return str(ending["text"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return part.status_detail or "the process is gone"


def _traceback_file(folder: Path, member: Member) -> Path | None:
    path = (folder / "ranks" / member.path.name).with_suffix(".faulthandler")
    return path if path.exists() else None


def _read(path: Path) -> Evidence | None:
    try:
        evidence = evidence_from_json(path.read_text())
    except (OSError, UnreadableEvidenceError):
        return None
    return evidence if evidence.processes else None
