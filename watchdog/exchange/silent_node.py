"""What is seen of a node whose ranks are all silent, left on the board before anybody asks.

Nobody of such a node may be able to answer when the question comes: who could is a process with
torch, which is not kept for hours beside ranks that may be stopped for as long.
"""

from __future__ import annotations

import time
from dataclasses import replace

from watchdog.evidence import Evidence, Gap, Process
from watchdog.exchange import parcel, roster
from watchdog.exchange.board import Board


def leave(board: Board, node: int, evidence: Evidence) -> None:
    """Write it down, in place of what stood there.

    Args:
        board: Where to.
        node: Name of the node: its lowest rank.
        evidence: All of the node, as seen from outside of its ranks.

    Raises:
        BoardError: The board does not answer.
    """
    ranks = [process.rank for process in evidence.processes if process.rank is not None]
    roster.enroll(board, node, ranks)
    parcel.post(board, _key(node), evidence)


def left(board: Board, node: int) -> Evidence | None:
    """What was left of a node, older by the time since; `None` where it is out of date.

    Raises:
        BoardError: The board does not answer.
    """
    evidence = parcel.fetch(board, _key(node))
    if evidence is None or evidence.collected_at_s is None:
        return None
    # Its ranks have said themselves where they are since then, and may have moved on.
    if roster.last_said_s(board, node) > evidence.collected_at_s:
        return None
    ago_s = max(0.0, time.time() - evidence.collected_at_s)
    ranks = ", ".join(str(one.rank) for one in evidence.processes if one.rank is not None)
    why = f"no rank of its node can speak; this is what its sentinel saw {ago_s:.0f} s before"
    return replace(
        evidence,
        processes=tuple(_older(process, ago_s) for process in evidence.processes),
        gaps=(*evidence.gaps, Gap(f"a fresh look at ranks {ranks}", why)),
    )


def _key(node: int) -> str:
    return f"seen/{node}"


def _older(process: Process, ago_s: float) -> Process:
    place = process.position
    return replace(
        process,
        identified_by=f"{process.identified_by} {ago_s:.0f} s before",
        position=None if place is None else roster.aged(place, ago_s),
        collectives=tuple(roster.aged_collective(one, ago_s) for one in process.collectives),
    )
