"""A rank as the sentinel sees one: a process with a black box."""

from __future__ import annotations

from pathlib import Path

from watchdog.blackbox.writing import BlackBox
from watchdog.process_identity import process_identity

# A rank that is in a section since ever, and whose watchdog thread beat once.
RANK = """
import os, sys, time
from pathlib import Path
from watchdog.blackbox.writing import BlackBox
from watchdog.process_identity import process_identity
given = dict(enumerate(sys.argv))
rank, beat_s = int(given[2]), float(given[3])
section, began_s = given.get(4, "weight_sync"), float(given.get(5, 1.0))
identity = process_identity({}, rank=rank, world_size=2).as_json()
box = BlackBox.create(Path(sys.argv[1]) / f"{rank}.blackbox", identity)
box.heartbeat(beat_s)
if section != "none":
    box.section(box.text(section), 0, 1, began_s, began_s, 5.0, 0)
print("ready", flush=True)
for line in sys.stdin:
    if line == "end\\n":
        box.exited()
        break
"""


def box_of_these_tests(local: Path) -> BlackBox:
    return BlackBox.create(local / "0.blackbox", process_identity({}, rank=0).as_json())


def end(process, how=None):
    if how is None:
        process.stdin.write("end\n")
        process.stdin.flush()
    else:
        process.send_signal(how)
    process.wait(20)
