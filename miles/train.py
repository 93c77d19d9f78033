"""Train by reinforcement learning: `python -m miles.train …`.

Exit status: 0 when all rollouts were trained, 1 when the run failed or flags exclude each
other, 2 for a flag that does not exist or is not built, 128 + n when ended by signal n.
"""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from types import FrameType

from miles.launchers import LAUNCHERS, RunFailedError
from miles.launchers.unbuilt import unbuilt_flag
from miles.utils.arguments import parse_args

logger = logging.getLogger("miles.train")


def _exit_on_signal(signum: int, frame: FrameType | None) -> None:
    sys.exit(128 + signum)


def main(argv: list[str] | None = None) -> int:
    """Parse, check, start everything, and wait.

    Flags are checked before torch is imported or any process started.

    Raises:
        AssertionError: The flags exclude each other; the message names them.
    """
    argv = sys.argv[1:] if argv is None else argv
    args = parse_args(argv)
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO, stream=sys.stderr)
    reason = unbuilt_flag(args)
    if reason is not None:
        logger.error("not built here: %s", reason)
        return 2
    # Until the launcher's own handlers are in place, and after: the way out is through
    # every `finally`, so that no process stays.
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, _exit_on_signal)
    launcher = importlib.import_module(LAUNCHERS[args.launcher])
    try:
        launcher.launch(args, argv)
    except RunFailedError as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
