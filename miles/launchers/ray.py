"""Starts ranks and engines as Ray actors, and calls them from this process."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys

from miles.launchers import RunFailedError


def launch(args: argparse.Namespace, argv: list[str]) -> None:
    """Start everything, train, and end everything that was started.

    Args:
        args: The parsed flags; ranks and engines get them as they are.
        argv: Not needed here.

    Raises:
        RunFailedError: A rank or an engine failed, or there is no room or no cluster.
        SystemExit: This process was told to end; 128 + the signal's number.
    """
    if importlib.util.find_spec("ray") is None:
        raise RunFailedError("--launcher ray needs Ray: pip install 'miles-watchdog[ray]'")
    # Imported late: Ray and torch take seconds, and bad flags must be refused before.
    from miles.ray.cluster import ray_cluster

    _say_steps_on_stdout()
    num_ranks = args.actor_num_nodes * args.actor_num_gpus_per_node
    with ray_cluster(args, num_cpus=num_ranks + (args.rollout_num_gpus or 0)):
        from miles.ray.driver import run

        run(args)


def _say_steps_on_stdout() -> None:
    # Where rank 0 says them under torchrun.
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    for name in ("miles.ray.driver", "miles.utils.step_report"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
