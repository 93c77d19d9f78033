"""What each rank does for its node: keeps a sentinel, answers other nodes, ends when told to.

One thread a rank, twice a second. Of the ranks of a node one, whoever holds a lock, is the
node's correspondent: it writes on the board where the ranks of the node are, and answers when
another node asks for an incident that this node has not noticed itself.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from watchdog.guest.notices import has_standard_error, notice, notice_once
from watchdog.guest.own_descriptor import above_standard
from watchdog.guest.own_threads import NAME, mark_this_thread
from watchdog.guest.worker import run_guarded
from watchdog.node.post import Post
from watchdog.process_identity import started_ticks
from watchdog.sentinel import abort_order, endings, sentinel
from watchdog.sentinel.box import BOX_SUFFIX
from watchdog.settings import PREFIX

if TYPE_CHECKING:
    from watchdog.node.correspondent import Correspondent

THREAD_NAME = "weight-sync-watchdog-node"
_OWN_NAME = "/proc/self/comm"
_TICK_S = 0.5
_LOOK_AT_SENTINEL_EVERY = 4
_AWAY_S = 5.0
# A sentinel that cannot start is not started for ever.
_MAX_STARTS = 20
# In hundredths of a second; a busy machine takes long to start a Python.
_DETACHED_WITHIN_TICKS = 300


class NodeDuties:
    """The thread.

    Args:
        post: Where it is done.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._correspondent: Correspondent | None = None
        self._children: list[int] = []
        self._num_starts = 0
        self._num_ticks = 0
        self._last_tick_s = time.monotonic()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; it never keeps the process alive."""
        thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, timeout_s: float = 1.0) -> None:
        """End the thread; an answer that it is writing gets so long (s)."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def tick(self) -> None:
        """Do what is to be done now."""
        orderer = abort_order.ordered_by(self._post.local)
        if orderer is not None:
            from watchdog.incident.abort import end_this_process, ending_words

            notice(ending_words(self._post.identity(), f"ordered by the watchdog of {orderer}"))
            end_this_process()
        now_s = time.monotonic()
        # A sentinel that stood still along with this process gets a moment to show that it is back.
        was_away = now_s - self._last_tick_s > _AWAY_S
        self._last_tick_s = now_s
        if self._num_ticks % _LOOK_AT_SENTINEL_EVERY == 0 and not was_away:
            self._children = [pid for pid in self._children if endings.status_of_child(pid) is None]
            self._keep_sentinel()
        self._num_ticks += 1
        if self._has_other_nodes():
            self._correspond()

    def _has_other_nodes(self) -> bool:
        # By name: reading all boxes would be work for nothing in most jobs.
        names = (path.stem for path in self._post.local.glob(f"*{BOX_SUFFIX}"))
        return sum(name.isdigit() for name in names) < (self._post.identity().world_size or 0)

    def _correspond(self) -> None:
        if self._correspondent is None:
            # Late, since what it imports is much for a job of one node.
            from watchdog.node.correspondent import Correspondent

            self._correspondent = Correspondent(self._post)
        self._correspondent.tick()

    def _run(self) -> None:
        mark_this_thread()
        # The first one quickly: a rank may be killed in its first second.
        while True:
            run_guarded(self.tick)
            if self._stopping.wait(_TICK_S):
                return

    def _keep_sentinel(self) -> None:
        holder = sentinel_pid(self._post.local)
        if holder is not None:
            return
        if self._num_starts >= _MAX_STARTS:
            notice_once("sentinel", "the sentinel of this node cannot be kept alive")
            return
        self._num_starts += 1
        command = sentinel_command(self._post.local, self._post.run_folder, detached=True)
        # Neither it nor a speaker that it starts, which may import torch, is a rank of the job.
        left_out = ("LD_PRELOAD", PREFIX)
        environment = {name: text for name, text in os.environ.items() if name not in left_out}
        # It gets nothing of this process but its standard error, and survives its signals.
        null = above_standard(os.open(os.devnull, os.O_RDWR))
        error = 2 if has_standard_error() else null
        actions = [(os.POSIX_SPAWN_DUP2, *pair) for pair in ((null, 0), (error, 1), (error, 2))]
        try:
            pid = os.posix_spawn(
                command[0], command, environment, file_actions=actions, setsid=True, setsigmask=()
            )
        finally:
            os.close(null)
        # It leaves the sentinel behind and ends at once: this process has no child for long.
        for _ in range(_DETACHED_WITHIN_TICKS):
            if endings.status_of_child(pid) is not None:
                return
            self._stopping.wait(0.01)
        self._children.append(pid)


def sentinel_command(local: Path, run_folder: Path, *, detached: bool = False) -> list[str]:
    """Command line that starts a sentinel without `site` and the packages that it would find.

    Args:
        local: Folder of the node's black boxes, on this host.
        run_folder: `<dir>/<run>`.
        detached: Whether the process that is started only leaves the sentinel behind, as nobody's
            child: a host may wait until it has no child any more.
    """
    root = Path(sentinel.__file__).parents[1]
    steps = [
        "import os, sys, types",
        # What ended and is not reaped, since the GIL of its parent is held, keeps this name alone.
        f"os.access({_OWN_NAME!r}, os.W_OK) and open({_OWN_NAME!r}, 'w').write({NAME!r})",
        *(["os.fork() and os._exit(0)"] if detached else []),
        # The package by hand: its own file is not ours alone, and needs modules that cost memory.
        "package = sys.modules['watchdog'] = types.ModuleType('watchdog')",
        f"package.__path__ = [{str(root)!r}]",
        "from watchdog.sentinel.sentinel import main",
        "main(sys.argv[2:])",
    ]
    speaker = [sys.executable, "-m", "watchdog.node.speaker", str(run_folder)]
    arguments = ["miles-watchdog-sentinel", str(local), str(run_folder), json.dumps(speaker)]
    return [sys.executable, "-I", "-S", "-c", "; ".join(steps), *arguments]


def sentinel_pid(local: Path) -> int | None:
    """The sentinel of the node, `None` where none is there. One that is stuck is ended."""
    path = local / sentinel.LOCK
    try:
        pid, ticks = map(int, path.read_text().split())
        silent_s = time.time() - path.stat().st_mtime
    except (OSError, ValueError):
        return None
    if started_ticks(pid) != ticks:
        return None
    if silent_s > sentinel.STALE_AFTER_S:
        endings.kill(pid)
        return None
    return pid
