"""The nodes of a job meet over one incident: one of them leads, all end with one evidence.

Each node comes with the evidence of its own ranks. The leader asks the nodes of the missing
ranks, waits for them no longer than a bound, takes what was left of those that are silent,
merges, and writes the result on the board; the others wait for that result, and one of them
takes over where the leader shows no sign of life.
Whoever cannot reach the board is left with what it brought, which is then its result.

What holds at every step, so that any node may end at any moment:
    - A node depends on no other: each wait has an end, after which it goes on alone.
    - All notes are replaced whole; writing one twice changes nothing.
    - Two leaders can be (one was only slow): both results are complete, the later one stands.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from watchdog.evidence import NO_ANSWER, Evidence, Gap, Process, Stall
from watchdog.exchange import parcel, roster, silent_node
from watchdog.exchange.board import Board, BoardError

ASKED = "asked"
_TURN_S = 0.5
# A node that has said that it answers gets so much longer: it may be a busy one.
_PROLONGED_S = 7.0
_LEADER_STALE_S = 4.0


@dataclass(frozen=True)
class Outcome:
    """How a meeting ended for one node.

    Attributes:
        evidence: Of the whole job, as far as it could be had.
        leads: Whether this node speaks for the job: it led, or found itself alone.
    """

    evidence: Evidence
    leads: bool


@dataclass
class Meeting:
    """One node's part in the meeting over one incident.

    Attributes:
        board: Where the nodes meet.
        incident: Id of the incident, the same on all nodes.
        node: Name of this node: its lowest rank.
        own: Evidence of this node's ranks and other processes.
        wait_s: How long the leader waits for other nodes (s); for one that has said that it
            will answer, seven seconds more.
        now_s: Monotonic time (s).
    """

    board: Board
    incident: str
    node: int
    own: Evidence
    wait_s: float
    now_s: Callable[[], float] = time.monotonic
    _began_s: float | None = None
    _is_posted: bool = False
    _generation: int = 1
    _lead_until_s: float | None = None
    _is_prolonged: bool = False
    _pulse: int = 0
    _leader_pulse: tuple[bytes | None, float] = (None, 0.0)
    _nodes: dict[int, int] = field(default_factory=dict)
    _answers: dict[int, Evidence] = field(default_factory=dict)

    def step(self) -> Outcome | None:
        """Do what can be done now, without waiting; returns the outcome when there is one.

        Never raises for a board that fails.
        """
        try:
            return self._step()
        except BoardError as error:
            why = f"the nodes could not meet: {error}"
            return Outcome(self._merged(lambda rank: self._lost(rank, why)), leads=True)

    def _step(self) -> Outcome | None:
        now_s = self.now_s()
        if self._began_s is None:
            self._began_s = now_s
        if not self._is_posted:
            # On every board, also where the store, on which the node enrolled, is gone.
            roster.enroll(self.board, self.node, _ranks(self.own))
            parcel.post(self.board, f"answer/{self.incident}/{self.node}", self.own)
            self._is_posted = True
        result_key = f"result/{self.incident}"
        result = parcel.fetch(self.board, result_key) if self.board.has(result_key) else None
        if result is not None:
            return Outcome(result, leads=False)
        if self._lead_until_s is None:
            self._follow_or_claim(now_s)
        return None if self._lead_until_s is None else self._lead(now_s)

    def _follow_or_claim(self, now_s: float) -> None:
        assert self._began_s is not None
        # The node of rank 0 first, as long as it is able to.
        if self.node != 0 and self._generation == 1 and now_s < self._began_s + _TURN_S:
            return
        name = str(self.node).encode()
        if self.board.claim(f"leader/{self.incident}/{self._generation}", name) == name:
            self._lead_until_s = now_s + self.wait_s
            return
        pulse = self.board.get(f"pulse/{self.incident}/{self._generation}")
        seen, since_s = self._leader_pulse
        if pulse != seen or not since_s:
            self._leader_pulse = (pulse, now_s)
        elif now_s - since_s > _LEADER_STALE_S:
            self._generation += 1
            self._leader_pulse = (None, 0.0)

    def _lead(self, now_s: float) -> Outcome | None:
        assert self._lead_until_s is not None
        self._pulse += 1
        pulse_key = f"pulse/{self.incident}/{self._generation}"
        self.board.put(pulse_key, str(self._pulse).encode())
        if self._pulse == 1:
            self.board.put(ASKED, _question(self.incident, self.own))
        missing = self._missing()
        self._nodes = roster.nodes_of(self.board, missing, self._nodes)
        nodes = {self._nodes[rank] for rank in missing if rank in self._nodes}
        for node in nodes - set(self._answers):
            answer = parcel.fetch(self.board, f"answer/{self.incident}/{node}")
            if answer is not None:
                self._answers[node] = answer
        if self._missing() and now_s < self._until_s(nodes - set(self._answers), now_s):
            return None
        for node in nodes - set(self._answers):
            seen = silent_node.left(self.board, node)
            if seen is not None:
                self._answers[node] = seen
        evidence = self._merged(self._silent)
        parcel.post(self.board, f"result/{self.incident}", evidence)
        return Outcome(evidence, leads=True)

    def _until_s(self, silent: set[int], now_s: float) -> float:
        """Until when to wait: longer for a node that has said that it is about to answer."""
        assert self._lead_until_s is not None
        if now_s < self._lead_until_s or self._is_prolonged:
            return self._lead_until_s
        if any(self.board.has(answering_key(self.incident, node)) for node in silent):
            self._is_prolonged = True
            self._lead_until_s += _PROLONGED_S
        return self._lead_until_s

    def _missing(self) -> list[int]:
        present = _ranks(self.own).union(*map(_ranks, self._answers.values()))
        return sorted(set(range(self.own.world_size or 0)) - present)

    def _silent(self, rank: int) -> Process:
        node = self._nodes.get(rank)
        waited_s = self.wait_s + (_PROLONGED_S if self._is_prolonged else 0.0)
        why = f"its node did not answer within {waited_s:g} s"
        lost = getattr(self.board, "failures", {})
        if node is None and lost:
            return self._lost(rank, "; ".join(f"{name}: {text}" for name, text in lost.items()))
        if node is None:
            why = f"no node has said that rank {rank} is its own"
        elif node in self._answers:
            why = "its node answered, and has no black box of it"
        return roster.silent_rank(self.board, rank, node, why)

    def _lost(self, rank: int, why: str) -> Process:
        gap = Gap(f"evidence of rank {rank}", why)
        detail = f"{NO_ANSWER}: its host could not be reached"
        return Process(f"rank {rank}", "trainer", rank=rank, status_detail=detail, gaps=(gap,))

    def _merged(self, stand_in: Callable[[int], Process]) -> Evidence:
        parts = [self.own, *(self._answers[node] for node in sorted(self._answers))]
        found: dict[str, Process] = {}
        for part in parts:
            for process in part.processes:
                found.setdefault(_key(process, part is self.own, found), process)
        named = [replace(process, key=key) for key, process in found.items()]
        named += [stand_in(rank) for rank in self._missing()]
        return replace(
            self.own,
            processes=tuple(sorted(named, key=_order)),
            stall=_stall(parts),
            log_events=tuple(event for part in parts for event in part.log_events),
            flags=next((part.flags for part in parts if part.flags), ()),
            gaps=tuple(dict.fromkeys(gap for part in parts for gap in part.gaps)),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )


def answering_key(incident: str, node: int) -> str:
    """Key under which a node says that it has been asked, and will answer as soon as it can."""
    return f"answering/{incident}/{node}"


def held(
    meeting: Meeting, *, sleep: Callable[[float], None] = time.sleep, poll_s: float = 0.1
) -> Outcome:
    """Go through a meeting to its end.

    Takes at most the leader's wait, four times that where leaders die one after another; then
    this node is left alone.
    """
    deadline_s = meeting.now_s() + 4 * (meeting.wait_s + _PROLONGED_S + _LEADER_STALE_S)
    while meeting.now_s() < deadline_s:
        outcome = meeting.step()
        if outcome is not None:
            return outcome
        sleep(poll_s)
    why = f"the meeting of the nodes did not end within {deadline_s:.0f} s"
    return Outcome(replace(meeting.own, gaps=(*meeting.own.gaps, Gap("other nodes", why))), True)


def _question(incident: str, own: Evidence) -> bytes:
    section = own.stall.section if own.stall is not None else ""
    return json.dumps({"incident": incident, "section": section}).encode()


def _ranks(evidence: Evidence) -> set[int]:
    return {
        process.rank
        for process in evidence.processes
        if process.rank is not None and process.role == "trainer"
    }


def _key(process: Process, is_own: bool, taken: Iterable[str]) -> str:
    """The key of a process in the whole: what only its node numbers gets the host's name too."""
    if is_own or process.rank is not None or process.key not in taken:
        return process.key
    return f"{process.key} on {process.host}"


def _stall(parts: list[Evidence]) -> Stall | None:
    stalls = [part.stall for part in parts if part.stall is not None]
    if not stalls:
        return None
    first = max(stalls, key=lambda stall: stall.waited_s)
    noticed_by = sorted({rank for stall in stalls for rank in stall.noticed_by})
    return replace(first, noticed_by=tuple(noticed_by))


def _order(process: Process) -> tuple[int, int, str]:
    kind = 0 if process.rank is not None else 1 if process.engine is not None else 2
    return (kind, process.rank if process.rank is not None else process.engine or 0, process.key)
