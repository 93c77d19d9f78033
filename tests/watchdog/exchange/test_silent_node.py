import re
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from boards import MemoryBoard
from test_meeting import Clock, enroll_all, meeting_of, node_evidence, run

from watchdog.evidence import Collective, Position
from watchdog.exchange import roster, silent_node, store_address
from watchdog.exchange.store_address import StoreAddress


def stopped(node: int, ago_s: float):
    """A node of two stopped ranks in a barrier, as it was so long ago."""
    evidence = node_evidence(node)
    place = Position("weight_sync", phase_age_s=7.0, collective=Collective("barrier", waited_s=3.0))
    processes = [
        replace(one, status="stopped", position=place, identified_by="looked at from outside")
        for one in evidence.processes
    ]
    collected_at_s = time.time() - ago_s
    return replace(evidence, processes=tuple(processes), collected_at_s=collected_at_s, stall=None)


def test_a_node_that_cannot_answer_is_in_the_report_by_what_it_left():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    silent_node.leave(board, 6, stopped(6, ago_s=40.0))

    outcomes = run({node: meeting_of(node, board, clock) for node in (0, 2, 4)}, clock)

    by_rank = {one.rank: one for one in outcomes[0].evidence.processes}
    assert [by_rank[rank].status for rank in (6, 7)] == ["stopped", "stopped"]
    assert re.fullmatch(r"looked at from outside 4\d s before", by_rank[6].identified_by)
    assert [gap.what for gap in outcomes[0].evidence.gaps] == ["a fresh look at ranks 6, 7"]


def test_what_it_left_is_as_old_as_it_is():
    board = MemoryBoard()
    silent_node.leave(board, 6, stopped(6, ago_s=40.0))

    place = silent_node.left(board, 6).processes[0].position

    assert place.phase_age_s == pytest.approx(47.0, abs=9.0)
    assert place.collective.waited_s == pytest.approx(43.0, abs=9.0)


def test_ranks_that_went_on_are_not_judged_by_what_was_left():
    board = MemoryBoard()
    silent_node.leave(board, 6, stopped(6, ago_s=40.0))

    roster.write_state(board, 6, [roster.RankState(6, 1, "host-3", Position(), time.time())])

    assert silent_node.left(board, 6) is None


def test_a_node_that_answers_is_not_judged_by_what_was_left():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    silent_node.leave(board, 6, stopped(6, ago_s=40.0))

    outcomes = run({node: meeting_of(node, board, clock) for node in (0, 2, 4, 6)}, clock)

    assert {one.status for one in outcomes[0].evidence.processes} == {"running"}


READS = """
import sys
from pathlib import Path
from watchdog.exchange.store import noted_store_board
from watchdog.exchange.board import BoardError
try:
    print(noted_store_board(Path(sys.argv[1])).get("state/0"))
except BoardError as error:
    print("torch" in sys.modules, error)
"""


def said_by_reader(local) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", READS, str(local)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.strip(), done.stderr


def test_who_is_no_rank_reaches_the_store_that_a_rank_noted(tmp_path):
    distributed = pytest.importorskip("torch.distributed")
    server = distributed.TCPStore("127.0.0.1", 0, is_master=True)
    server.set("miles-watchdog/state/0", b"here")
    store_address.note(tmp_path, StoreAddress("127.0.0.1", server.port, "miles-watchdog/"))

    assert said_by_reader(tmp_path) == ("b'here'", "")


def test_for_a_store_that_is_gone_torch_is_not_even_imported(tmp_path):
    store_address.note(tmp_path, StoreAddress("127.0.0.1", 9, "miles-watchdog/"))

    said, errors = said_by_reader(tmp_path)

    assert said.startswith("False no connection to the store")
    assert errors == ""


WAITS = """
import os, sys, time
import torch.distributed
from pathlib import Path
from watchdog.exchange.store import noted_store_board
from watchdog.exchange.board import BoardError
began_s = time.monotonic()
try:
    noted_store_board(Path(sys.argv[1]), timeout_s=1.0)
except BoardError:
    print(time.monotonic() - began_s, flush=True)
os._exit(0)
"""


def test_a_store_that_lets_one_connect_and_never_answers_costs_no_more_than_a_call(tmp_path):
    pytest.importorskip("torch")
    with socket.create_server(("127.0.0.1", 0)) as stopped_host:
        port = stopped_host.getsockname()[1]
        store_address.note(tmp_path, StoreAddress("127.0.0.1", port, "miles-watchdog/"))
        done = subprocess.run(
            [sys.executable, "-c", WAITS, str(tmp_path)],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip

    assert float(done.stdout) < 15.0


def test_where_no_rank_noted_a_store_there_is_none(tmp_path):
    (tmp_path / store_address.FILE).write_text("cut off")

    assert store_address.noted(tmp_path) is None
