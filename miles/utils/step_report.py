"""What a run says of each step: one line for people, one JSON object for `--save-metrics`."""

from __future__ import annotations

import argparse
import json
import logging
from typing import Any

logger = logging.getLogger(__name__)


def begin_report(args: argparse.Namespace) -> None:
    """Empty the metrics file, if one is asked for."""
    if args.save_metrics:
        open(args.save_metrics, "w").close()


def report_step(args: argparse.Namespace, metrics: dict[str, Any]) -> None:
    """Say and write down what one step measured.

    Args:
        args: The run's flags.
        metrics: Plain numbers by name, in the order to show them; times in seconds.
    """
    words = (f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in metrics.items())
    logger.info("  ".join(words))
    if args.save_metrics:
        with open(args.save_metrics, "a") as file:
            file.write(json.dumps(metrics) + "\n")
