"""Several receivers share one IPC socket, and some senders have nobody to talk to.

What hangs
    The trainer ranks other than 0, in a zmq send or receive without a peer.

How it shows
    Rank 0 gets through or sits in its own receive, the other ranks in zmq on their own sockets;
    the engines all listen on the socket of rank 0 (each worker believes to have local rank 0).

What to do
    Give each worker its own socket: base rank plus local rank.

Not to be confused with
    zmq_peer_lost, where all ranks wait because the receiver failed.

Source
    https://github.com/verl-project/verl/pull/6243
    https://github.com/verl-project/verl-omni/pull/349
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation
from watchdog.verdict import network

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    doubly, lost = network.bound_twice(situation)
    if doubly and lost and peers.hung(situation):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "Several receivers bind the same socket, and nobody binds the senders' others.",
            [*quotes(doubly, 2), *quotes(lost, 2)],
        )
    alone = [p for p in situation.trainers if situation.wait(p).operation == "zmq" and p.rank != 0]
    zero = situation.trainer(0)
    if (
        not alone
        or zero is None
        or situation.wait(zero).operation == "zmq"
        or not peers.hung(situation)
    ):
        return None
    if len(alone) < len(situation.trainers) - 1:
        return None
    shared = situation.log(r"rank-0\.sock")
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if shared else "possible",
        "All ranks but 0 wait for a peer on their socket.",
        [*(seen(situation, p) for p in alone[:3]), *quotes(shared, 1)],
        culprits=alone,
    )
