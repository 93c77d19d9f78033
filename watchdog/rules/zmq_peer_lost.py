"""All trainers wait for the acknowledgement of a receiver that failed before answering.

What hangs
    Every trainer rank in a zmq receive without a time limit; no rank is in a collective, so no
    watchdog of a collective ever fires.

How it shows
    Frames of zmq on every trainer, GPUs at 0 %, and a traceback in an engine's log; or
    `zmq.error.Again` on the trainer, which is the bounded form of the same.

What to do
    Give the sockets a receive time-out and send the error back instead of nothing.

Not to be confused with
    ipc_socket_collision, where only some ranks wait because two share a socket.

Source
    https://github.com/Tencent-Hunyuan/UniRL/issues/337
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines, peers
from watchdog.signs.answers import finding, quoted, quotes, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "engine_rpc_stuck"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    again = list(situation.log(r"zmq\.error\.Again|zmq.*Resource temporarily unavailable"))
    waiting = [p for p in situation.trainers if situation.wait(p).operation == "zmq"]
    engine_error = next((e for e in situation.logs.errors if engines.wrote(situation, e)), None)
    if engine_error and (again or (waiting and len(waiting) == len(situation.trainers))):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "The receiver of the weights failed and acknowledged nothing.",
            [
                quoted(engine_error),
                *(seen(situation, p) for p in waiting[:2]),
                *quotes(again, 1),
            ],
        )
    if waiting and len(waiting) == len(situation.trainers) and peers.hung(situation):
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "All trainers wait in zmq for an engine.",
            [seen(situation, p) for p in waiting[:2]],
        )
    return None
