"""Progress bars tell the time by their own clock, and rewrite one line."""

from __future__ import annotations

import pytest


def bar(done: int, clock: str, rate: str = "25.1it/s") -> str:
    return f"warm-up:  10%|# | {done}/900 [{clock}<09:00, {rate}]"


def counted(evidence) -> list[tuple[str, float]]:
    events = [e for e in evidence.log_events if e.kind == "progress"]
    start = min(e.time_s for e in evidence.log_events if e.time_s is not None)
    return [(e.fields["done"], e.time_s - start) for e in events]


def test_a_bar_without_times_counts_from_the_line_before_it(read_files):
    states = [bar(50, "00:04"), bar(400, "03:20"), bar(450, "03:24"), bar(500, "03:28")]
    log = "[2026-03-02 08:00:00 TP0] begin\n" + "\r".join(states) + "\n"

    found = counted(read_files({"a.log": log}))

    assert found == [("50", 4.0), ("400", 200.0), ("450", 204.0), ("500", 208.0)]


def test_a_bar_whose_beginning_was_not_seen_is_no_later_than_must_be(read_files):
    log = f"[2026-03-02 08:00:00 TP0] begin\n{bar(400, '20:00')}\n{bar(401, '20:04')}\n"

    assert counted(read_files({"a.log": log})) == [("400", 0.0), ("401", 4.0)]


@pytest.mark.parametrize("rate", ["25.1it/s", "3.80s/it", "499.1 examples/s", "80.2 tok/s, loss=1"])
def test_bars_of_any_unit_are_read(read_files, rate):
    log = f"[2026-03-02 08:00:00 TP0] begin\n{bar(7, '00:01', rate)}\n"

    assert [done for done, _ in counted(read_files({"a.log": log}))] == ["7"]
