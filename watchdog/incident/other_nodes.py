"""The part of an incident that other hosts have: their evidence, by way of the exchange."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from watchdog.evidence import Evidence, Gap
from watchdog.exchange.board import Board, BoardError, Together
from watchdog.exchange.folder import FolderBoard
from watchdog.exchange.meeting import Meeting, Outcome, held
from watchdog.exchange.store import default_store_board
from watchdog.incident.members import members_of
from watchdog.timing.stall_context import StallContext

FOLDER = "exchange"
ABORT = "abort"


def boards(context: StallContext) -> tuple[Board, tuple[Gap, ...]]:
    """Where the nodes meet: the store of this process, where it has one, and the run folder."""
    gaps: list[Gap] = []
    found: list[Board] = []
    try:
        store = default_store_board()
    except BoardError as error:
        gaps.append(Gap("evidence by way of the store", str(error)))
    else:
        found += [] if store is None else [store]
    found.append(FolderBoard(context.run_folder / FOLDER))
    return Together(found), tuple(gaps)


def node_of(context: StallContext) -> int:
    """Name of this node: the lowest rank that has a black box here."""
    local = [rank for rank, one in members_of(context).items() if one.is_local]
    return min(local, default=context.identity.rank or 0)


def met(
    context: StallContext,
    own: Evidence,
    wait_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Meet the other nodes, if there are any; the evidence of the whole job.

    Args:
        context: The stall.
        own: Evidence of this node.
        wait_s: How long to wait for other nodes' evidence (s).
        sleep: Waits so many seconds.
    """
    ranks = {process.rank for process in own.processes if process.rank is not None}
    if len(ranks) >= (own.world_size or 0):
        return Outcome(own, leads=True)
    board, gaps = boards(context)
    own = replace(own, gaps=(*own.gaps, *gaps))
    meeting = Meeting(board, context.incident_id, node_of(context), own, wait_s)
    return held(meeting, sleep=sleep)


def order_abort(context: StallContext, on_behalf_of: str) -> None:
    """Tell the other nodes, if there are any, to end their ranks too. Never raises.

    Args:
        context: The stall.
        on_behalf_of: Whose watchdog ends the job and for what.
    """
    local = [one for one in members_of(context).values() if one.is_local]
    if len(local) >= (context.identity.world_size or 0):
        return
    with contextlib.suppress(BoardError):
        boards(context)[0].put(ABORT, on_behalf_of.encode())
