"""The part of an incident that other hosts have: their evidence, by way of the exchange."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace

from watchdog.evidence import Evidence, Gap
from watchdog.exchange import silent_node
from watchdog.exchange.board import Board, BoardError, Together
from watchdog.exchange.folder import FolderBoard
from watchdog.exchange.meeting import Meeting, Outcome, answering_key, held
from watchdog.exchange.store import StoreBoard, default_store_board, noted_store_board
from watchdog.incident.members import members_of
from watchdog.timing.stall_context import StallContext

FOLDER = "exchange"
ABORT = "abort"


def boards(context: StallContext) -> tuple[Board, tuple[Gap, ...]]:
    """Where the nodes meet: the store of the rank, where it has one, and the run folder."""
    gaps: list[Gap] = []
    found: list[Board] = []
    try:
        store = _store(context)
    except BoardError as error:
        gaps.append(Gap("evidence by way of the store", str(error)))
    else:
        found += [] if store is None else [store]
    found.append(FolderBoard(context.run_folder / FOLDER))
    return Together(found), tuple(gaps)


def has_others(context: StallContext) -> bool:
    """Whether the job has ranks on other nodes than this one."""
    local = [one for one in members_of(context).values() if one.is_local]
    return len(local) < (context.identity.world_size or 0)


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


def announce(context: StallContext) -> None:
    """Tell the other nodes, if there are any, that this one is about to answer. Never raises."""
    if has_others(context):
        with contextlib.suppress(BoardError):
            boards(context)[0].put(answering_key(context.incident_id, node_of(context)), b"")


def leave_word(context: StallContext, evidence: Evidence) -> None:
    """Leave on the board what is seen of this node, whose ranks are all silent. Never raises.

    The run folder takes it where there is no store, or none that can be reached.

    Args:
        context: Any rank of the node.
        evidence: All of the node.
    """
    board: Board = FolderBoard(context.run_folder / FOLDER)
    with contextlib.suppress(BoardError):
        board = _store(context) or board
    with contextlib.suppress(BoardError):
        silent_node.leave(board, node_of(context), evidence)


def order_abort(context: StallContext, on_behalf_of: str) -> None:
    """Tell the other nodes, if there are any, to end their ranks too. Never raises.

    Args:
        context: The stall.
        on_behalf_of: Whose watchdog ends the job and for what.
    """
    if not has_others(context):
        return
    with contextlib.suppress(BoardError):
        note = {"on_behalf_of": on_behalf_of, "at_s": time.time()}
        boards(context)[0].put(ABORT, json.dumps(note).encode())


def abort_ordered_by(board: Board, since_s: float) -> str | None:
    """Whose watchdog on another node ends the job and for what; `None` where none does.

    Args:
        board: Where it would stand.
        since_s: When the ranks of this node started (wall clock, s): a launcher that starts ranks
            anew may keep the store, with the order that ended the ones before.

    Raises:
        BoardError: The board does not answer.
    """
    note = board.get(ABORT)
    try:
        order = json.loads(note or b"{}")
        return str(order["on_behalf_of"]) if float(order["at_s"]) > since_s else None
    except (ValueError, KeyError, TypeError):  # none, or written by another version
        return None


def _store(context: StallContext) -> StoreBoard | None:
    if context.identity.pid == os.getpid() or context.blackbox is None:
        return default_store_board()
    return noted_store_board(context.blackbox.parent)
