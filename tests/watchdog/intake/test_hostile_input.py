from __future__ import annotations

import gzip
import io
import os
import pickle
import socket
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from watchdog.errors import UnusableInputError
from watchdog.intake import evidence_from_paths
from watchdog.intake.plain_pickle import PickleRefusedError, plain_pickle

GOOD = "[2026-05-05 10:00:03] Received sigquit from a child process.\n"
DUMP = 'Process 812: ray::LoraActor.push\n\nThread 812 (idle): "MainThread"\n    push (a.py:1)\n'


class Opens:
    """Pickled, it would create a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def gaps(evidence) -> dict[str, str]:
    return {gap.what: gap.why for gap in evidence.gaps}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_is_refused_and_nothing_runs(tmp_path, read_files, protocol):
    made = tmp_path / "made"
    data = pickle.dumps({"entries": [Opens(made)], "version": "2.10"}, protocol)

    evidence = read_files({"trace_rank_0": data, "a.log": GOOD})

    assert not made.exists()
    assert [event.kind for event in evidence.log_events if event.file == "a.log"]
    if protocol >= 2:
        assert "nothing was executed" in gaps(evidence)["trace_rank_0"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_plain_data_is_read(protocol):
    shared = [1, 2.5]
    value = {
        "a": [shared, shared, ("x", b"y"), (), None, True, False, -(2**40)],
        "b": {"nested": {3: "z" * 300}},
    }
    if protocol < 3:
        value["a"][2] = ("x", "y")  # bytes need a function there

    assert plain_pickle(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x04cos\nsystem\n(S'true'\ntR.", "opcode GLOBAL"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "opcode STACK_GLOBAL"),
        (b"\x80\x04K\x01Q.", "opcode BINPERSID"),
        (b"\x80\x04", "broken"),
        (b"\x80\x04]r\xff\xff\xff\x7f.", ""),
        (b"\x80\x02a.", "broken"),
        (b"\x80\x02}\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x10K\x01s.", "key"),
    ],
)
def test_an_odd_pickle_is_refused_with_a_reason(data, why):
    if not why:
        assert plain_pickle(data) == []  # a memo index of two billion costs nothing
        return
    with pytest.raises(PickleRefusedError, match=why):
        plain_pickle(data)


def tar_of(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def zst_of(content: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor().compress(content)


@pytest.mark.parametrize(
    "pack",
    [
        lambda data: ("x.tar.gz", tar_of({"job/rank3.txt": data})),
        lambda data: ("x.tar", tar_of({"job/rank3.txt": data}, "w")),
        lambda data: ("x.tgz.bak", tar_of({"rank3.txt": data})),
        lambda data: ("x.zip", zip_of({"a/rank3.txt": data})),
        lambda data: ("rank3.txt.gz", gzip.compress(data)),
        lambda data: ("rank3.txt.zst", zst_of(data)),
        lambda data: ("x.tar.zst", zst_of(tar_of({"rank3.txt": data}, "w"))),
        lambda data: ("x.zip", zip_of({"inner.tar.gz": tar_of({"rank3.txt": data})})),
    ],
)
def test_archives_are_read_in_place(tmp_path, read_files, pack):
    name, data = pack(DUMP.encode())

    process = read_files({name: data}).processes[0]

    assert (process.rank, process.pid) == (3, 812)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_names_that_lead_out_of_an_archive_are_only_names(tmp_path, read_files):
    outside = tmp_path.parent / "escaped.txt"
    members = {"../escaped.txt": DUMP.encode(), "/tmp/../abs.txt": GOOD.encode()}

    evidence = read_files({"a.tar.gz": tar_of(members), "b.zip": zip_of(members)})

    assert len(evidence.processes) >= 1
    assert not outside.exists()


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: zip_of({"a.log": data})])
def test_a_bomb_is_refused_and_the_rest_is_read(monkeypatch, read_files, pack):
    monkeypatch.setattr("watchdog.intake.archives.FREE_BYTES", 2**20)
    monkeypatch.setattr("watchdog.intake.archives.MAX_RATIO", 20)
    bomb = pack(b"0" * (64 * 2**20))

    evidence = read_files({"bomb": bomb, "a.log": GOOD})

    assert "bomb" in gaps(evidence)["bomb"]
    assert any(event.kind == "engine_child_failed" for event in evidence.log_events)


def test_archives_in_archives_in_archives_are_not_opened(read_files):
    inner = zip_of({"c.zip": zip_of({"rank1.txt": DUMP.encode()})})

    evidence = read_files({"a.zip": zip_of({"b.zip": inner}), "a.log": GOOD})

    assert any("inside an archive" in why for why in gaps(evidence).values())


@pytest.mark.parametrize(
    "data",
    [
        b"\x1f\x8b\x08\x00garbage",
        b"PK\x03\x04" + b"\x00" * 60,
        gzip.compress(GOOD.encode() * 1000)[:-40],
        tar_of({"a": b"x" * 9000})[:-100],
    ],
)
def test_a_broken_archive_costs_a_gap(read_files, data):
    evidence = read_files({"broken.bin": data, "a.log": GOOD})

    assert gaps(evidence)


def test_a_named_pipe_a_socket_and_a_device_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/zero")
    (tmp_path / "a.log").write_text(GOOD)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "sock"))

    evidence = evidence_from_paths([tmp_path])
    server.close()

    assert {"pipe", "null", "sock"} <= set(gaps(evidence))


def test_a_named_pipe_given_by_name_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UnusableInputError, match="named pipe"):
        evidence_from_paths([tmp_path / "pipe"])


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "a" / "a.log").write_text(GOOD)
    (tmp_path / "again.log").symlink_to(tmp_path / "a" / "a.log")

    evidence = evidence_from_paths([tmp_path])

    assert len([e for e in evidence.log_events if e.kind == "engine_child_failed"]) == 1


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UnusableInputError, match=r"nowhere\.log"):
        evidence_from_paths([tmp_path / "nowhere.log"])


def test_files_of_which_nothing_is_understood_are_named(tmp_path):
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 40)

    with pytest.raises(UnusableInputError, match=r"noise\.bin: is binary"):
        evidence_from_paths([tmp_path])


@pytest.mark.parametrize("opening", ["[", '{"entries":', '{"a":'])
def test_json_nested_without_end_is_survived(read_files, opening):
    evidence = read_files({"deep.json": opening * 200_000, "a.log": GOOD})

    assert any(event.kind == "engine_child_failed" for event in evidence.log_events)


def test_a_file_that_may_not_be_read_costs_a_gap(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "a.log").write_text(GOOD)
    (tmp_path / "secret.log").write_text(GOOD)
    (tmp_path / "secret.log").chmod(0)

    assert "secret.log" in gaps(evidence_from_paths([tmp_path]))


def bomb_of(line: bytes, num_bytes: int, num_members: int = 1) -> bytes:
    content = line * (num_bytes // len(line))
    return zip_of({f"{number}.log": content for number in range(num_members)})


@pytest.mark.parametrize("line", [b"ERROR x\n", b"ERROR \n", b"ERROR "])
def test_a_bomb_of_one_line_over_and_over_ends_and_says_so(read_files, line):
    bomb = bomb_of(line, 20 * 2**20, 6)

    evidence = read_files({"bomb.zip": bomb, "a.log": GOOD})

    why = gaps(evidence)["bomb.zip"]
    assert "its size explains" in why or "beyond its limit" in why
    assert [event.kind for event in evidence.log_events if event.file == "a.log"]


def test_a_bomb_inside_an_archive_counts_as_the_archive_does(read_files):
    outer = zip_of({f"{number}.zip": bomb_of(b"ERROR \n", 3 * 2**20) for number in range(8)})

    evidence = read_files({"nest.zip": outer, "a.log": GOOD})

    assert "its size explains" in gaps(evidence)["nest.zip"]


def test_many_different_lines_in_an_archive_are_all_read(read_files):
    lines = [f"{sha256(b'%d' % n).hexdigest()} step {n}" for n in range(80_000)]
    text = "\n".join([*lines, GOOD]).encode()

    evidence = read_files({"a.log.gz": gzip.compress(text)})

    assert not evidence.gaps
    assert any(GOOD.strip()[-20:] in event.text for event in evidence.log_events)


def test_a_folder_of_proc_is_not_walked_since_files_there_have_no_end() -> None:
    with pytest.raises(UnusableInputError, match="a folder of /proc"):
        evidence_from_paths(["/proc/self"])
