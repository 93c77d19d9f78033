"""A rollout engine with SGLang's endpoints that never generates a token.

`--behaviour` says what it does with the weights: `healthy` takes them, `never_answers` waits for
running requests that never end, `answers_late` takes very long over them, `dies` ends at once,
`worker_dies` loses the worker that holds them, `refuses` answers with an error. `/generate`
answers unless generation is paused; then it waits, as SGLang does.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from _forking import die_with_parent

_LATE_S = 25.0


class Engine:
    """The state behind the endpoints, and the worker that holds the weights."""

    def __init__(self, behaviour: str) -> None:
        self.behaviour = behaviour
        self.weight_version = 0
        self.may_generate = threading.Event()
        self.may_generate.set()
        self.no_running_requests = threading.Event()
        # Both ends stay open here, so a dead worker is not seen as an end of file.
        self._server_end, self._worker_end = socket.socketpair()
        self._worker_pid = os.fork()
        if self._worker_pid == 0:
            scheduler_loop(self._worker_end, behaviour)

    def update_weights(self) -> tuple[int, str]:
        """Take new weights; returns the HTTP status and the text."""
        if self.behaviour == "refuses":
            return 500, '{"success": false, "message": "size of tensor a must match tensor b"}'
        if self.behaviour == "dies":
            os.kill(self._worker_pid, signal.SIGKILL)
            os._exit(1)
        if self.behaviour == "never_answers":
            self.wait_for_running_requests()
        self._server_end.sendall(b"update\n")
        self.recv_from_scheduler()
        self.weight_version += 1
        return 200, '{"success": true}'

    def wait_for_running_requests(self) -> None:
        """Wait until no request is running."""
        self.no_running_requests.wait()

    def recv_from_scheduler(self) -> bytes:
        """Wait for the worker's answer."""
        return self._server_end.recv(100)


def scheduler_loop(end: socket.socket, behaviour: str) -> None:
    """The worker: takes commands from the server until it ends."""
    die_with_parent()
    while True:
        end.recv(100)
        if behaviour == "worker_dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if behaviour == "answers_late":
            load_weights_slowly()
        end.sendall(b"done\n")


def load_weights_slowly() -> None:
    """Work on the weights for a long while, busy all the time."""
    until_s = time.monotonic() + _LATE_S
    while time.monotonic() < until_s:
        # Mostly in the sum, and the GIL is free now and then.
        sum(range(1_000_000))
        time.sleep(0.001)


class Handler(BaseHTTPRequestHandler):
    """The endpoints."""

    engine: Engine

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, text = self._answer()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self) -> None:
        self.do_POST()

    def _answer(self) -> tuple[int, str]:
        if self.path == "/pause_generation":
            self.engine.may_generate.clear()
        elif self.path == "/continue_generation":
            self.engine.may_generate.set()
        elif self.path == "/update_weights_from_tensor":
            return self.engine.update_weights()
        elif self.path == "/get_weight_version":
            return 200, str(self.engine.weight_version)
        elif self.path == "/generate":
            self.wait_until_generation_continues()
            return 200, '{"text": "42"}'
        return 200, '{"success": true}'

    def wait_until_generation_continues(self) -> None:
        self.engine.may_generate.wait()

    def log_message(self, format: str, *args: object) -> None:
        pass


def _watch_release(release_fd: int, engine: Engine) -> None:
    os.read(release_fd, 1)
    engine.behaviour = "healthy"
    engine.no_running_requests.set()
    engine.may_generate.set()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--behaviour", required=True)
    parser.add_argument("--release-fd", type=int, required=True)
    options = parser.parse_args()
    die_with_parent()
    Handler.engine = Engine(options.behaviour)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    threading.Thread(
        target=_watch_release,
        args=(options.release_fd, Handler.engine),
        daemon=True,
        name="watch-release",
    ).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
