"""Starts the ranks through torchrun's own elastic launcher, on this machine."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from miles.launchers import RunFailedError
from miles.rollout.engine_process import rollout_engines

_SHUTDOWN_S = 5


def launch(args: argparse.Namespace, argv: list[str]) -> None:
    """Start engines and ranks, wait for the ranks, and leave no process behind.

    Args:
        args: The parsed flags.
        argv: The same flags as given, for the ranks to parse again.

    Raises:
        RunFailedError: A rank raised, or died.
        SystemExit: This process was told to end; 128 + the signal's number.
    """
    external = args.rollout_external_engine_addrs
    if external:
        _run_ranks(args, argv, list(external))
        return
    if args.debug_train_only:
        _run_ranks(args, argv, [])
        return
    with rollout_engines(args) as engines:
        try:
            _run_ranks(args, argv, [engine.address for engine in engines])
        except RunFailedError as error:
            dead = [
                f"engine {e.index} ended with status {e.process.returncode}"
                for e in engines
                if e.process.poll() is not None
            ]
            if dead:
                raise RunFailedError(f"{error}\n{'; '.join(dead)}") from error
            raise


def _run_ranks(args: argparse.Namespace, argv: list[str], addresses: list[str]) -> None:
    # Imported late: torch takes seconds, and bad flags must be refused before.
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ["MILES_ROLLOUT_ENGINES"] = ",".join(addresses)
    os.environ["MILES_LAUNCHER_PID"] = str(os.getpid())
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    num_ranks = args.actor_num_nodes * args.actor_num_gpus_per_node
    with tempfile.TemporaryDirectory(prefix="miles-ranks-") as log_dir:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=num_ranks,
            run_id=f"miles-{os.getpid()}",
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            local_addr="127.0.0.1",
            max_restarts=0,
            shutdown_timeout=_SHUTDOWN_S,
            logs_specs=DefaultLogsSpecs(log_dir=log_dir),
        )
        try:
            elastic_launch(config, sys.executable)("-u", "-m", "miles.train_rank", *argv)
        except SignalException as error:
            raise SystemExit(128 + error.sigval) from None
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            raise RunFailedError(_failure_message(rank, failure)) from error


def _failure_message(rank: int, failure: object) -> str:
    message = getattr(failure, "message", "")
    if isinstance(message, dict):
        message = message.get("message", message)
    status = getattr(failure, "exitcode", None)
    return f"rank {rank} (pid {getattr(failure, 'pid', '?')}) ended with status {status}: {message}"
