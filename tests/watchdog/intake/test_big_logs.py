from __future__ import annotations

import io
import random

import pytest

from watchdog.intake import BLOCKS, evidence_from_paths
from watchdog.intake import log_scan as scanning
from watchdog.intake.line_reader import search_literals
from watchdog.intake.literal_search import GrepSearch, RegexSearch, grep_is_usable

NOISE = (
    "loss",
    "grad",
    "tokens",
    "lr",
    "memory",
    "rollout",
    "reward",
    "layers",
    "batch",
    "optimizer",
)
TRACEBACK = """\
Traceback (most recent call last):
  File "/app/push.py", line 40, in push
    send()
ValueError: shape mismatch in bucket 7
"""


class Lines:
    """Takes lines and remembers them."""

    def __init__(self, block_lines: int = 0) -> None:
        self.seen: list[tuple[int, str]] = []
        self._block_lines = block_lines
        self._left = 0

    @property
    def inside_block(self) -> bool:
        return self._left > 0

    def feed(self, number: int, raw: str, known: bool = True) -> None:
        self.seen.append((number, raw))
        self._left = self._block_lines if raw.startswith("BLOCK") else max(0, self._left - 1)


@pytest.fixture
def small_pieces(monkeypatch):
    for name, size in (("PIECE", 4096), ("HEAD", 200), ("TAIL", 200), ("SAMPLE", 50)):
        monkeypatch.setattr(scanning, f"{name}_BYTES", size)


def noise(num_lines: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [
        f"(MegatronTrainRayActor pid={300 + n % 64}) [2026-05-05 10:{n // 60 % 60:02}:{n % 60:02}]"
        f" {rng.choice(NOISE)} {rng.random():.4f} {rng.choice(NOISE)}"
        for n in range(num_lines)
    ]


def test_a_scan_hands_over_the_lines_with_literals_and_their_numbers(small_pieces):
    lines = noise(3000)
    for number in (700, 1501, 2222):
        lines[number] = f"needle in line {number + 1}"
    data = "\n".join(lines).encode()
    taker = Lines()

    list(scanning.scan(io.BytesIO(data), len(data), RegexSearch(["needle"]), taker))

    found = {number: text for number, text in taker.seen if "needle" in text}
    assert found == {n + 1: f"needle in line {n + 1}" for n in (700, 1501, 2222)}
    assert all(lines[number - 1] == text for number, text in taker.seen)
    assert len(taker.seen) < 500


def test_the_first_and_the_last_lines_are_always_handed_over(small_pieces):
    lines = noise(2000)
    data = ("\n".join(lines) + "\n").encode()
    taker = Lines()

    list(scanning.scan(io.BytesIO(data), len(data), RegexSearch(["needle"]), taker))

    assert taker.seen[0] == (1, lines[0])
    assert taker.seen[-1] == (2000, lines[-1])


def test_all_lines_of_a_block_are_handed_over_across_pieces(small_pieces):
    lines = noise(500)
    lines[100] = "BLOCK begins"
    data = "\n".join(lines).encode()
    taker = Lines(block_lines=200)

    list(scanning.scan(io.BytesIO(data), len(data), RegexSearch(["BLOCK"]), taker))

    numbers = [number for number, _ in taker.seen]
    assert set(range(101, 302)) <= set(numbers)
    assert numbers == sorted(set(numbers))


def test_a_line_as_long_as_the_file_is_cut(small_pieces):
    data = b"needle " + b"x" * 300_000 + b" end\n"
    taker = Lines()

    list(scanning.scan(io.BytesIO(data), len(data), RegexSearch(["needle"]), taker))

    assert all(len(text) <= scanning.MAX_LINE_BYTES + 10 for _, text in taker.seen)


@pytest.mark.skipif(not grep_is_usable(), reason="no grep here")
def test_grep_and_re_find_the_same_lines(tmp_path):
    literals = search_literals(BLOCKS)
    rng = random.Random(3)
    lines = noise(2000, seed=4)
    for literal in literals:
        lines[rng.randrange(len(lines))] = f"{rng.choice(NOISE)} {literal} {rng.choice(NOISE)}"
    lines[50] = "bytes \udcff\udcfe " + literals[0]
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    path = tmp_path / "a.log"
    path.write_bytes(data)

    with GrepSearch(str(path), literals) as grep:
        by_grep = grep.positions(data[:50_000], 0) + [
            50_000 + position for position in grep.positions(data[50_000:], 50_000)
        ]
    by_re = RegexSearch(literals).positions(data, 0)

    def lines_of(positions):
        return {data.count(b"\n", 0, position) for position in positions}

    assert lines_of(by_grep) == lines_of(by_re)


@pytest.mark.parametrize("with_grep", [True, False])
def test_a_big_log_tells_the_same_as_its_interesting_lines_alone(tmp_path, monkeypatch, with_grep):
    if not with_grep:
        monkeypatch.setattr("watchdog.intake.reading.grep_is_usable", lambda: False)
    monkeypatch.setattr("watchdog.intake.reading.MAX_WHOLE_BYTES", 32_768)
    rng = random.Random(7)
    told = [
        "(MegatronTrainRayActor pid=301) [2026-05-05 10:00:01] Timer update_weights start",
        "(SGLangEngine pid=77) [2026-05-05 10:00:02] Start unload Lora adapter. Lora name=a",
        *(f"(Pusher pid=5) {line}" for line in TRACEBACK.splitlines()),
        "(SGLangEngine pid=77) [2026-05-05 10:00:03] Received sigquit from a child process.",
    ]
    lines = noise(20_000)
    # Other ranks write between the lines of the traceback.
    start = rng.randrange(5_000, 14_000)
    places = [start, start + 500, *(start + 600 + 7 * n for n in range(4)), start + 900]
    for place, line in zip(places, told, strict=True):
        lines.insert(place, line)
    (tmp_path / "few").mkdir()
    (tmp_path / "big").mkdir()
    (tmp_path / "few" / "job.log").write_text("\n".join(told))
    (tmp_path / "big" / "job.log").write_text("\n".join(lines))

    def told_by(folder):
        events = evidence_from_paths([tmp_path / folder]).log_events
        kept = [event for event in events if event.kind != "last_line"]
        return sorted((e.kind, e.text, e.pid, sorted(e.fields)) for e in kept)

    assert told_by("big") == told_by("few")
    assert {"traceback", "engine_child_failed"} <= {kind for kind, *_ in told_by("big")}


def test_repeated_events_are_counted_not_kept(tmp_path):
    lines = [
        f"[2026-05-05 10:{n // 60:02}:{n % 60:02} TP0] Cache not flushed because there are pending"
        f" requests. #queue-req: {n}, #running-req: 0"
        for n in range(3000)
    ]
    path = tmp_path / "sglang_engine_3.log"
    path.write_text("\n".join(lines))

    events = [e for e in evidence_from_paths([path]).log_events if e.kind == "engine_control"]

    assert len(events) < 40
    assert events[0].fields["queued"] == "0"
    assert events[-1].fields["queued"] == "2999"
    assert events[-1].fields["count"] == "3000"
    assert events[-1].engine == 3


def test_a_utf_16_log_is_read_whatever_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr("watchdog.intake.reading.MAX_WHOLE_BYTES", 4096)
    lines = [*noise(500), "RuntimeError: pidfd_getfd: Operation not permitted", *noise(500)]
    (tmp_path / "a.log").write_text("\n".join(lines), encoding="utf-16")

    kinds = {event.kind for event in evidence_from_paths([tmp_path]).log_events}

    assert "cuda_ipc_refused" in kinds
