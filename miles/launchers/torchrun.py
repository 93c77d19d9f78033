"""Starts the ranks through torchrun's own elastic launcher, on this machine."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from miles.launchers import RunFailedError
from miles.rollout.engine_process import rollout_engines

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

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
    with rollout_engines(args) as addresses:
        _run_ranks(args, argv, addresses)


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
            failures = {**_failures_in(log_dir), **error.failures}
            raise RunFailedError(_first_failure(failures)) from error


def _failures_in(log_dir: str) -> dict[int, ProcessFailure]:
    """The failures of ranks that had raised, but not ended, when the agent looked.

    A rank on its way out closes its connections first: its peers may end before it.
    """
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    files = {int(file.parent.name): file for file in Path(log_dir).rglob("error.json")}
    return {rank: ProcessFailure(rank, 0, 1, str(file)) for rank, file in files.items()}


def _first_failure(failures: Mapping[int, ProcessFailure]) -> str:
    """Say which rank failed first, and its own words.

    Times of failures are whole seconds, and a rank that merely lost its peer (gloo's own
    words) or was ended by the agent (SIGTERM) may have failed in the same one: it is named
    only where no other failed.
    """

    def order(failure: ProcessFailure) -> tuple[bool, bool, int]:
        was_killed = failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM
        lost_its_peer = "gloo/transport" in _words(failure)
        return not was_killed, lost_its_peer, failure.timestamp

    rank, failure = min(failures.items(), key=lambda item: order(item[1]))
    return f"rank {rank} failed: {_words(failure)}"


def _words(failure: ProcessFailure) -> str:
    message: object = failure.message
    return str(message["message"] if isinstance(message, dict) else message)
