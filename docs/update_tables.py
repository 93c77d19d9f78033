"""Rewrite the tables of README.md and docs/ that are made from the code.

Run it in an environment where the project is installed: `python docs/update_tables.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLES = (("README.md", "settings"), ("docs/causes.md", "rules"))
MARKERS = {"settings": "settings", "rules": "causes"}


def main() -> None:
    """Replace what stands between the markers of each table."""
    for file, command in TABLES:
        program = "from watchdog.cli import main; main()"
        table = subprocess.check_output(
            [sys.executable, "-c", program, command, "--markdown"], text=True
        )
        path = ROOT / file
        marker = MARKERS[command]
        block = f"<!-- {marker} -->\n\n{table}\n<!-- /{marker} -->"
        pattern = rf"<!-- {marker} -->.*?<!-- /{marker} -->"
        path.write_text(re.sub(pattern, lambda _: block, path.read_text(), flags=re.S))  # noqa: B023


if __name__ == "__main__":
    main()
