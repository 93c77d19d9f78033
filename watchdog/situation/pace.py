"""How fast something counts, and when it would be done."""

from __future__ import annotations

from collections.abc import Iterable

from watchdog.evidence import LogEvent


def pace_of(events: Iterable[LogEvent]) -> str:
    """Counter, rate and estimated end of the last progress counter, "" where none counts.

    The rate is that between the first and the last line of the counter's last run, by the times
    of the lines.
    """
    run: list[tuple[float, int, int]] = []
    name = ""
    for event in events:
        done, total = event.fields.get("done", ""), event.fields.get("total", "")
        if event.kind != "progress" or event.time_s is None or not (done + total).isdigit():
            continue
        if not done or not total:
            continue
        entry = (event.time_s, int(done), int(total))
        if run and (event.fields.get("name", "") != name or entry[1] < run[-1][1]):
            run = []
        name = event.fields.get("name", "")
        run.append(entry)
    if len(run) < 2 or run[-1][0] <= run[0][0] or run[-1][1] <= run[0][1]:
        return ""
    rate = (run[-1][1] - run[0][1]) / (run[-1][0] - run[0][0])
    left_s = (run[-1][2] - run[-1][1]) / rate
    return f"{name} {run[-1][1]}/{run[-1][2]}, {rate:.3g} a second, about {duration(left_s)} to go"


def duration(seconds: float) -> str:
    """A time that a person reads: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
