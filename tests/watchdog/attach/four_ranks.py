"""Four ranks, of which one never arrives; no watchdog anywhere."""

from dataclasses import replace

import rank_never_arrives
from _job import main

if __name__ == "__main__":
    main(rank_never_arrives.run, replace(rank_never_arrives.EXPECTED, ranks=4))
