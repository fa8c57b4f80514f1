"""The files that kops fetches by default: their places in a Maven repository, and their checksums, independent of the repository.

A mirror, or whoever impersonates it, serves both files and their checksums. Sets of other versions and plugins are verified by the
repository's own checksums only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("jars.sha256")


@cache
def pinned() -> dict[str, dict[str, str]]:
    """Return, by set and by a file's path in a Maven repository, its SHA-256 in hexadecimal digits."""
    found: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            files = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            digest, place = line.split()
            files[place] = digest
    return found
