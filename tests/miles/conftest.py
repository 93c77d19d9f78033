import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from miles.models.transformer import TransformerConfig
from miles.rollout.engine_model import EngineModel
from miles.rollout.engine_server import Engine, http_server
from miles.utils.pausable_memory import torch_memory_saver

PROGRAMS = Path(__file__).parents[1] / "programs"


class Program:
    """A child process that is spoken to line by line."""

    def __init__(self, *command):
        self._unread = b""
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def says(self, within_s=60.0):
        """Its next line without the newline; None if it ends or says none within that time."""
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stdout], [], [], within_s)
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                return None
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def tell(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def waits_in(self, thread_id, within_s=30.0):
        """The kernel function that a thread of it comes to wait in, once it reads paused memory."""
        deadline_s = time.monotonic() + within_s
        path = Path(f"/proc/{self.process.pid}/task/{thread_id}/wchan")
        poll = threading.Event()
        while time.monotonic() < deadline_s:
            where = path.read_text()
            if where in ("handle_userfault", "__do_sys_pause"):
                return where
            poll.wait(0.01)
        return where

    def end(self):
        self.process.kill()
        _, errors = self.process.communicate(timeout=30)
        return errors.decode()


@pytest.fixture
def start_program():
    started = []

    def start(name, *arguments):
        started.append(Program(str(PROGRAMS / name), *arguments))
        return started[-1]

    yield start
    for program in started:
        program.end()


@pytest.fixture
def saver():
    """The process's memory saver, with nothing paused before and after."""
    torch_memory_saver.configure()
    yield torch_memory_saver
    torch_memory_saver.resume()
    torch_memory_saver.configure()


class ServedEngine(Engine):
    """An engine that serves from a thread of this process; its endpoints may be replaced."""

    def __init__(self, config):
        served = EngineModel(config)
        super().__init__(served)
        self.model = served._model
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._server = http_server(self, listener)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="test-engine"
        )
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join(timeout=30)
        self._server.server_close()


@pytest.fixture
def start_engine():
    """Start an engine with the shape of the default model."""
    engines = []

    def start():
        config = TransformerConfig(vocab_size=64, hidden_size=64, num_layers=2, seq_length=16)
        engines.append(ServedEngine(config))
        return engines[-1]

    yield start
    for engine in engines:
        engine.stop()
