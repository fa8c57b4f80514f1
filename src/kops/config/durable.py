"""Files that something else vouches for: they have to be on disk before it is written."""

from __future__ import annotations

import os
from pathlib import Path


def synced(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
