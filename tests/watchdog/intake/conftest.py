from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from watchdog.evidence import Evidence
from watchdog.intake import evidence_from_paths

ReadFiles = Callable[..., Evidence]


@pytest.fixture
def read_files(tmp_path: Path) -> ReadFiles:
    """Writes files by name and reads their folder; bytes as they are, text as UTF-8."""

    def read(files: dict[str, str | bytes]) -> Evidence:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            path.write_bytes(data)
        return evidence_from_paths([tmp_path])

    return read
