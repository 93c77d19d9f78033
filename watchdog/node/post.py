"""What a rank needs to know to do its part for its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from watchdog.process_identity import ProcessIdentity
from watchdog.settings import Settings


@dataclass(frozen=True)
class Post:
    """The place of one rank on its node.

    Attributes:
        settings: All settings.
        identity: Says what is known about this process by now.
        box: This rank's black box on this host.
        run_folder: `<dir>/<run>`.
    """

    settings: Settings
    identity: Callable[[], ProcessIdentity]
    box: Path
    run_folder: Path

    @property
    def local(self) -> Path:
        """Folder of the node's black boxes, on this host."""
        return self.box.parent
