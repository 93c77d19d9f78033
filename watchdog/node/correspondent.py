"""Keeps this node's place on the board, and answers for it when another node asks."""

from __future__ import annotations

import json
import os
import time

from watchdog.blackbox.reading import position
from watchdog.exchange import parcel, roster, store_address
from watchdog.exchange.board import Board, BoardError
from watchdog.exchange.folder import FolderBoard
from watchdog.exchange.meeting import ASKED, answering_key
from watchdog.exchange.store import StoreBoard, default_store_board
from watchdog.incident import node_evidence
from watchdog.incident.leader import Leadership
from watchdog.incident.members import Member, members
from watchdog.incident.other_nodes import FOLDER, abort_ordered_by
from watchdog.node.post import Post
from watchdog.sentinel import abort_order
from watchdog.timing.stall_context import StallContext

_STATE_EVERY_S = 5.0
_LOOK_EVERY_S = 1.0
# A node that noticed the stall itself answers on its own; it gets so long to do so.
_OWN_ANSWER_S = 2.0
_BOARD_EVERY_S = 30.0


class Correspondent:
    """One rank's candidacy for it, and the work where it is elected.

    Args:
        post: Where it is done.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._election = Leadership(post.local)
        self._store: StoreBoard | None = None
        self._next_board_s = 0.0
        self._next_look_s = 0.0
        self._next_state_s = 0.0
        self._enrolled: set[int] = set()
        self._asked: tuple[str, float] | None = None
        self._answered: set[str] = set()

    def tick(self) -> None:
        """Do what is due."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + _LOOK_EVERY_S
        identity = self._post.identity()
        ranks = [path.stem for path in self._post.local.glob("*.blackbox") if path.stem.isdigit()]
        if not self._election.take():
            return
        self._election.sign_of_life()
        self._connect(now_s)
        node = min(map(int, ranks), default=identity.rank or 0)
        if self._store is not None:
            try:
                self._write(self._store, node, set(map(int, ranks)), now_s)
                self._read(self._store, node, now_s)
            except BoardError:
                self._store = None
        self._read_folder(node, now_s)

    def _connect(self, now_s: float) -> None:
        if self._store is None and now_s >= self._next_board_s:
            self._next_board_s = now_s + _BOARD_EVERY_S
            try:
                self._store = default_store_board()
            except BoardError:
                return
            if self._store is None:
                self._next_board_s = now_s + _LOOK_EVERY_S
            elif self._store.address is not None:
                store_address.note(self._post.local, self._store.address)
            self._enrolled = set()

    def _write(self, board: Board, node: int, ranks: set[int], now_s: float) -> None:
        new = ranks - self._enrolled
        if new:
            roster.enroll(board, node, ranks)
            self._enrolled |= new
        if new or now_s >= self._next_state_s:
            self._next_state_s = now_s + _STATE_EVERY_S
            local = members([self._post.local], self._post.identity().host)
            roster.write_state(board, node, map(_state, local.values()))

    def _read_folder(self, node: int, now_s: float) -> None:
        # Nobody asks by way of the folder before there is an incident in it.
        folder = self._post.run_folder / FOLDER
        if os.path.isdir(folder):
            try:
                self._read(FolderBoard(folder), node, now_s)
            except BoardError:
                return

    def _read(self, board: Board, node: int, now_s: float) -> None:
        orderer = abort_ordered_by(board, self._post.identity().started_at_s)
        if orderer is not None:
            abort_order.order(self._post.local, (), orderer)
        note = board.get(ASKED)
        if note is None:
            return
        incident = str(json.loads(note)["incident"])
        if incident in self._answered:
            return
        if self._asked is None or self._asked[0] != incident:
            self._asked = (incident, now_s)
            board.put(answering_key(incident, node), b"")
        key = f"answer/{incident}/{node}"
        if board.has(key):
            self._answered.add(incident)
        elif now_s > self._asked[1] + self._patience_s(incident):
            parcel.post(board, key, node_evidence(self._context(incident)))
            self._answered.add(incident)

    def _patience_s(self, incident: str) -> float:
        """How long to wait for this node to answer by itself, if it noticed the stall."""
        return _OWN_ANSWER_S if (self._post.run_folder / "incidents" / incident).is_dir() else 0.0

    def _context(self, incident: str) -> StallContext:
        section, _, index = incident.rpartition("-")
        return StallContext(
            section=section,
            index=int(index),
            waited_s=0.0,
            deadline_s=0.0,
            deadline_reason="",
            phase="",
            identity=self._post.identity(),
            run_folder=self._post.run_folder,
            incident_id=incident,
            settings=self._post.settings,
            blackbox=self._post.box,
        )


def _state(one: Member) -> roster.RankState:
    place = position(one.reading, one.now_s)
    return roster.RankState(one.rank, one.pid, one.host, place, time.time())
