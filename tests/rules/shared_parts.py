"""Lines, stacks and processes that cases of several kinds have in common."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import log, rank
from watchdog.evidence import LogEvent, Process

SYNC = log("Timer update_weights start", kind="trainer_phase", time_s=20.0, rank=0)

LATER = log("NodeManager: 8 workers, 0 queued tasks", line=9, kind="ray_idle", time_s=1900.0)

ACTOR_LOOP = """
main_loop (ray/_private/worker.py:964)
"""

ALL_REDUCE = """
all_reduce (torch/distributed/distributed_c10d.py:2927)
log_metrics (train_ddp.py:151)
main (train_ddp.py:203)
"""


def waiting(*ranks: int) -> list[Process]:
    return [rank(r, stacks.GLOO_BARRIER) for r in ranks]


def error_of(text: str, exception: str, frames: str = "f (f.py:1)", **more: object) -> LogEvent:
    fields = {"exception": exception, "message": text, "frames": frames}
    more.setdefault("time_s", 30.0)
    more.setdefault("line", 5)
    return log(f"{exception}: {text}", kind="traceback", fields=fields, **more)


ROLLOUT = """
select (selectors.py:468)
run_until_complete (asyncio/base_events.py:674)
rollout (rl.py:61)
"""

ALL = (0, 1, 2, 3)
