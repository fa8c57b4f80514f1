"""Sends a cluster's workers the part of kops that tasks run, so that kops need not be installed there."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import kops

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS = ("core", "formats", "plugins", "config", "gateways/wire", "spark")
_FILES = ("__init__.py", "gateways/__init__.py")


def ship_kops(session: SparkSession) -> None:
    """Send the modules that tasks import, as a zip that Python imports from."""
    package = Path(kops.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="kops-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # workers fetch it for as long as the session lives
    archive = folder / "kops.zip"
    with zipfile.ZipFile(archive, "w") as content:
        for name in _FILES:
            content.write(package / name, f"kops/{name}")
        for part in _PARTS:
            for file in sorted((package / part).rglob("*.py")):
                content.write(file, f"kops/{file.relative_to(package)}")
    session.addArtifacts(str(archive), pyfile=True)
