"""Where and how backups go to disk unless told otherwise. Imports nothing heavy."""

import os
import tempfile

DEFAULT_DISK_DIR = os.path.join(tempfile.gettempdir(), "miles-offload-train")
DEFAULT_DISK_CHUNK_MB = 64
