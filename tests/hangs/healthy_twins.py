"""The healthy twin of every program here, one after another in one job: no alarm may be raised."""

import importlib
from pathlib import Path

from _job import Expected, Job, main

EXPECTED = Expected(state="healthy", culprits=(), where=(), engine="healthy")


def programs() -> list[str]:
    """Names of the programs that hang, sorted."""
    others = {"conftest", "healthy_twins", "sglang_engine"}
    names = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")}
    return sorted(name for name in names - others if not name.startswith("test_"))


def run(job: Job) -> None:
    assert job.healthy, "the twins are healthy: pass --healthy"
    for name in programs():
        importlib.import_module(name).run(job)


if __name__ == "__main__":
    main(run, EXPECTED)
