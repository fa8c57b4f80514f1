"""Numbered texts on any file system that Spark can reach: the newest is the one with the highest number.

Spark's committer moves a text into place when it is complete, so a killed writer leaves none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kops.spark.driver.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERED = re.compile(r"/(\d+)/[^/]+$")


def newest_manifest(session: SparkSession, path: str) -> tuple[int, str | None]:
    """Return the highest number below a path, and its text; 0 and None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        found = session.read.text(f"{path}/*", wholetext=True).selectExpr("_metadata.file_path as at", "value").collect()
    except AnalysisException as missing:
        if missing.getCondition() == "PATH_NOT_FOUND":
            return 0, None
        with explained(f"read {path}"):
            raise
    numbered = sorted((int(match[1]), str(row.value)) for row in found if (match := _NUMBERED.search(row["at"])))
    return numbered[-1] if numbered else (0, None)


def write_manifest(session: SparkSession, path: str, number: int, text: str) -> None:
    """Write a text under a number that is not taken."""
    rows = session.createDataFrame([(text,)], "value string").coalesce(1)
    with explained(f"write {path}"):
        rows.write.mode("errorifexists").text(f"{path}/{number:06}")
