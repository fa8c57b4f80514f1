"""The rows of a restore: an archive's records, read instead of a topic's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kops.operations.archive.place import Place
from kops.operations.replay.jobs import Work

if TYPE_CHECKING:
    from kops.spark.replay.jobs import Part
    from kops.spark.types import DataFrame


def rows_of_archive(work: Work, parts: Sequence[Part]) -> DataFrame:
    """Return what is sent of an archive, a task a partition, in the order of the offsets."""
    from kops.spark.reading.archive import in_parts, read_archive
    from kops.spark.replay.rows import COLUMNS

    given = work.arguments
    place = Place(given["path"])
    rows = in_parts(read_archive(work.engine.session, [place.records(run) for run in given["runs"]]), [part.partition for part in parts])
    new = {"topic": f"'{given['anchor']}' as topic", "target_partition": "partition as target_partition"}
    return rows.selectExpr(*(new.get(name, name) for name in COLUMNS))
