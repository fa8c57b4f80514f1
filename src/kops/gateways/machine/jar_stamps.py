"""Stamps in the Java parts of kops: each jar says which sources it is built from, and kops uses only jars of its own Python code.

``java/agent_jar.py`` imports this when kops is built, so there is nothing here but the standard library.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from kops import __version__

AGENT, RUNNER = "agent", "runner"
ENTRY = "META-INF/made-of"
SOURCES = Path(__file__).parents[4] / "java"
"""In a clone; an installed kops has none."""
_BUILD = "agent_jar.py"


def sources(part: str) -> list[Path]:
    return sorted((SOURCES / part).rglob("*.java"))


def expected_stamp(part: str) -> str:
    """Return the stamp of a jar that is built now: the version of kops, and a digest of the sources where they are."""
    build = SOURCES / _BUILD
    if not build.is_file():
        return __version__
    digest = hashlib.sha256(build.read_bytes())
    for source in sources(part):
        digest.update(source.name.encode() + source.read_bytes())
    return f"{__version__} {digest.hexdigest()}"


def stamp_of(jar: Path) -> str | None:
    """Return the stamp of a jar; None: it has none, or there is no such jar."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(ENTRY).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def has_our_stamp(jar: Path, part: str) -> bool:
    """Whether a jar was built with this Python code: of these very sources in a clone, of the same version elsewhere."""
    found, expected = stamp_of(jar), expected_stamp(part)
    return found is not None and (found == expected or found.partition(" ")[0] == expected)
