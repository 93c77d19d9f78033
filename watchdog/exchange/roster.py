"""What each node says of its ranks while all is well, for the time when it says nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from watchdog.evidence import NO_ANSWER, Collective, Gap, Position, Process
from watchdog.exchange.board import Board
from watchdog.serialization import from_data, to_data


@dataclass(frozen=True)
class RankState:
    """One rank as its node last knew it.

    Attributes:
        rank: Global rank.
        pid: Process id on its host.
        host: Host name.
        position: Its place without history.
        said_at_s: Wall clock of that host when it said so (s).
    """

    rank: int
    pid: int
    host: str
    position: Position
    said_at_s: float


def enroll(board: Board, node: int, ranks: Iterable[int]) -> None:
    """Write down, once, which node the ranks live on.

    Args:
        board: Where to.
        node: Name of the node: its lowest rank.
        ranks: Its ranks.
    """
    for rank in ranks:
        board.put(f"node-of/{rank}", str(node).encode())


def write_state(board: Board, node: int, states: Iterable[RankState]) -> None:
    """Replace what stands of a node's ranks."""
    data = {
        state.rank: {
            "pid": state.pid,
            "host": state.host,
            "position": to_data(replace(state.position, history=())),
            "said_at_s": state.said_at_s,
        }
        for state in states
    }
    board.put(f"state/{node}", json.dumps(data).encode())


def nodes_of(board: Board, ranks: Iterable[int], known: Mapping[int, int]) -> dict[int, int]:
    """Rank to node, of those that enrolled; what is known is not asked again."""
    found = dict(known)
    for rank in ranks:
        note = None if rank in found else board.get(f"node-of/{rank}")
        if note is not None and note.isdigit():
            found[rank] = int(note)
    return found


def silent_rank(board: Board, rank: int, node: int | None, why: str) -> Process:
    """A rank from whose node no answer came, with what it last said.

    Never raises: a board that is gone is one more thing that is not known.
    """
    state = None
    try:
        state = None if node is None else _state(board, rank, node)
    except OSError as error:
        why = f"{why}; its last state is not to be had: {error}"
    gap = Gap(f"evidence of rank {rank}", why, "look at its host")
    if state is None:
        said = f"{NO_ANSWER}, and it never said where it was"
        return Process(f"rank {rank}", "trainer", rank=rank, status_detail=said, gaps=(gap,))
    ago_s = max(0.0, time.time() - state.said_at_s)
    return Process(
        key=f"rank {rank}",
        role="trainer",
        rank=rank,
        pid=state.pid,
        host=state.host,
        status_detail=f"{NO_ANSWER} from host {state.host}; last heard of {ago_s:.0f} s ago",
        position=aged(state.position, ago_s),
        identified_by="what its node wrote on the board",
        gaps=(gap,),
    )


def _state(board: Board, rank: int, node: int) -> RankState | None:
    note = board.get(f"state/{node}")
    try:
        data = json.loads(note or b"{}").get(str(rank))
        if data is None:
            return None
        place = from_data(data["position"], Position)
        said_at_s = float(data["said_at_s"])
        return RankState(rank, int(data["pid"]), str(data["host"]), place, said_at_s)
    except Exception:  # written by another version
        return None


def last_said_s(board: Board, node: int) -> float:
    """When a node last said where its ranks are (its wall clock, s); 0 where it never did.

    Raises:
        BoardError: The board does not answer.
    """
    note = board.get(f"state/{node}")
    try:
        return max(
            (float(one["said_at_s"]) for one in json.loads(note or b"{}").values()), default=0
        )
    except (ValueError, KeyError, TypeError, AttributeError):  # written by another version
        return 0.0


def aged(place: Position, ago_s: float) -> Position:
    """A place that was noted so long ago (s), with the ages that it has now."""

    def older(age_s: float | None) -> float | None:
        return None if age_s is None else age_s + ago_s

    collective = place.collective
    return replace(
        place,
        section_age_s=older(place.section_age_s),
        phase_age_s=older(place.phase_age_s),
        heartbeat_age_s=older(place.heartbeat_age_s),
        collective=None if collective is None else aged_collective(collective, ago_s),
    )


def aged_collective(collective: Collective, ago_s: float) -> Collective:
    """A collective that was noted so long ago (s), with the time that it has waited by now."""
    waited_s = collective.waited_s
    return replace(collective, waited_s=None if waited_s is None else waited_s + ago_s)
