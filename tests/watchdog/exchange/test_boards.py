import json
import subprocess
import sys

import pytest
from boards import MemoryBoard

from watchdog.exchange.board import BoardError, Together
from watchdog.exchange.folder import FolderBoard
from watchdog.exchange.store import StoreBoard
from watchdog.incident.other_nodes import ABORT, abort_ordered_by


@pytest.fixture(params=["folder", "store"])
def board(request, tmp_path):
    if request.param == "folder":
        return FolderBoard(tmp_path / "exchange")
    distributed = pytest.importorskip("torch.distributed")
    return StoreBoard(distributed.TCPStore("127.0.0.1", 0, is_master=True, use_libuv=True))


def test_a_note_that_nobody_wrote_is_none(board):
    assert board.get("state/0") is None
    assert not board.has("state/0")


def test_a_note_is_read_as_it_was_written_last(board):
    board.put("state/0", b"old")
    board.put("state/0", b"\x00new\xff")

    assert board.get("state/0") == b"\x00new\xff"
    assert board.has("state/0")


def test_of_two_claims_the_first_stands(board):
    assert board.claim("leader/weight_sync-0001/1", b"4") == b"4"
    assert board.claim("leader/weight_sync-0001/1", b"0") == b"4"


def test_a_folder_that_cannot_be_made_is_a_board_error(tmp_path):
    (tmp_path / "exchange").write_text("a file stands in the way")
    board = FolderBoard(tmp_path / "exchange")

    with pytest.raises(BoardError, match="exchange"):
        board.put("state/0", b"")


def test_a_store_whose_host_is_gone_is_a_board_error():
    distributed = pytest.importorskip("torch.distributed")
    server = distributed.TCPStore("127.0.0.1", 0, is_master=True)
    client = distributed.TCPStore("127.0.0.1", server.port, is_master=False)
    board = StoreBoard(client, timeout_s=2.0)
    board.put("state/0", b"here")

    del server

    with pytest.raises(BoardError):
        board.get("state/0")


def test_what_a_dead_store_took_with_it_the_folder_still_has(tmp_path):
    store, folder = MemoryBoard(name="store"), FolderBoard(tmp_path)
    together = Together([store, folder])
    together.put("state/0", b"here")

    store.is_gone = True

    assert together.get("state/0") == b"here"
    assert together.failures == {"store": "gone"}


def test_a_board_that_failed_once_is_not_asked_again():
    dead = MemoryBoard()
    dead.is_gone = True
    together = Together([dead, MemoryBoard()])
    together.put("state/0", b"here")

    dead.is_gone = False

    together.put("state/1", b"here")
    assert dead.notes == {}


def test_all_boards_gone_is_a_board_error_that_names_them():
    dead = MemoryBoard(name="store")
    dead.is_gone = True

    with pytest.raises(BoardError, match="store: gone"):
        Together([dead]).get("state/0")


def test_ranks_that_were_started_anew_do_not_read_what_stood_in_a_store_before(monkeypatch):
    store = pytest.importorskip("torch.distributed").HashStore()
    StoreBoard(store).put("asked", b"before")

    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")

    assert StoreBoard(store).get("asked") is None


def test_a_process_without_torch_has_no_store():
    code = "from watchdog.exchange.store import default_store_board as b; print(b())"

    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert said.stdout == "None\n"


def test_an_order_to_end_is_none_for_ranks_that_were_started_after_it():
    board = MemoryBoard()
    board.put(ABORT, json.dumps({"on_behalf_of": "rank 3", "at_s": 100.0}).encode())

    assert abort_ordered_by(board, since_s=50.0) == "rank 3"
    assert abort_ordered_by(board, since_s=150.0) is None
    assert abort_ordered_by(MemoryBoard(), since_s=50.0) is None
