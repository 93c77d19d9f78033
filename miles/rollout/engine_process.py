"""The engine processes of a run: started together, ended together."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from miles.launchers import RunFailedError

_GRACE_S = 5.0


@dataclass(frozen=True)
class EngineProcess:
    """One engine that this process started.

    Attributes:
        index: Its number, from 0.
        address: `http://host:port`.
        process: The process; ends with its parent.
    """

    index: int
    address: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End the process: ask, wait, kill. Returns when it is gone."""
        self.process.terminate()
        try:
            self.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:  # stopped, or in an uninterruptible call
            self.process.kill()
            self.process.wait()


def num_engines(args: argparse.Namespace) -> int:
    """How many engines the flags ask for."""
    return int(max(1, args.rollout_num_gpus // args.rollout_num_gpus_per_engine))


@contextlib.contextmanager
def rollout_engines(args: argparse.Namespace) -> Iterator[list[str]]:
    """Start the engines that the flags ask for; end them on the way out, come what may.

    Those of `--rollout-external-engine-addrs` run already and are left alone.

    Yields:
        Address of each engine, by index; none with `--debug-train-only`. An engine answers
        once it has started up; until then a request to it waits.

    Raises:
        RunFailedError: As raised inside, with the engines that had ended by themselves.
    """
    if args.rollout_external_engine_addrs or args.debug_train_only:
        yield list(args.rollout_external_engine_addrs or [])
        return
    engines: list[EngineProcess] = []
    try:
        for index in range(num_engines(args)):
            engines.append(start_engine(args, index))
        yield [engine.address for engine in engines]
    except RunFailedError as error:
        ended = [e for e in engines if e.process.poll() is not None]
        words = [f"engine {e.index} ended with status {e.process.returncode}" for e in ended]
        raise RunFailedError("\n".join([str(error), *words])) from error
    finally:
        for engine in engines:
            engine.stop()


def start_engine(args: argparse.Namespace, index: int, host: str = "127.0.0.1") -> EngineProcess:
    """Start one engine, which ends when the calling thread does.

    Args:
        args: The run's flags.
        index: The engine's number, from 0.
        host: Address of this machine to listen at, on a free port.
    """
    # Bound here and handed over: no other process can take the port in between.
    with socket.create_server((host, 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "miles.rollout.engine_server"]
        command += ["--engine-index", str(index), "--port", str(port)]
        command += ["--listen-fd", str(listener.fileno()), "--parent-pid", str(os.getpid())]
        for name in ("vocab_size", "hidden_size", "num_layers", "seq_length"):
            command += ["--" + name.replace("_", "-"), str(getattr(args, name))]
        # Of its own session: Ctrl-C reaches the launcher alone, which then ends the engines.
        process = subprocess.Popen(
            command, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
    return EngineProcess(index, f"http://{host}:{port}", process)
