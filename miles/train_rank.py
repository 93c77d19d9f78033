"""One trainer rank, as a launcher starts it: `python -m miles.train_rank …`.

Needs torchrun's variables (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`, …), the engines' addresses
in `MILES_ROLLOUT_ENGINES` (comma-separated), and the launcher's process id in
`MILES_LAUNCHER_PID`: the rank ends when the launcher does.
"""

from __future__ import annotations

import logging
import os
import signal
import sys

from torch.distributed.elastic.multiprocessing.errors import record

from miles.training_loop import run
from miles.utils.arguments import parse_args
from miles.utils.orphans import die_with_parent


@record
def main() -> None:
    """Parse the launcher's flags again, train, and leave the error file that it reads."""
    die_with_parent(int(os.environ["MILES_LAUNCHER_PID"]))
    # The launcher passes Ctrl-C on; there is nothing to save, and no traceback worth reading.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stdout)
    addresses = os.environ["MILES_ROLLOUT_ENGINES"]
    run(parse_args(sys.argv[1:]), addresses.split(",") if addresses else [])


if __name__ == "__main__":
    main()
