"""Flags that upstream has and this stack does not: refused, never ignored."""

from __future__ import annotations

import argparse

from miles.launchers import LAUNCHERS


def unbuilt_flag(args: argparse.Namespace) -> str | None:
    """Why a run with these flags cannot start here.

    Returns:
        The flag, and what is missing; `None` where everything asked for exists.
    """
    reasons = {
        f"--launcher {args.launcher}": args.launcher not in LAUNCHERS,
        "--train-backend fsdp: only the megatron backend is built": args.train_backend == "fsdp",
        "--advantage-estimator ppo: there is no critic": args.advantage_estimator == "ppo",
        "--ref-load: there is no KL term that would use a reference": args.ref_load is not None,
        "--keep-old-actor needs the weights backuper: remove --disable-weights-backuper": (
            args.keep_old_actor and not args.enable_weights_backuper
        ),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)
