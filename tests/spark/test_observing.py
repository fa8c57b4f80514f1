"""Counts of rows that pass by, where Spark tells them and where it never does."""

import pytest

from kops.spark.driver import observing
from kops.spark.driver.observing import watched

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("rows", [5, 0])
def test_counts_are_there_without_waiting_for_what_never_comes(spark, rows, monkeypatch):
    monkeypatch.setattr(observing, "_PATIENCE_SECONDS", 3600.0)
    frame, watch = watched(spark.range(10).where(f"id * 2 < {2 * rows}"), {"number": "count(*)", "most": "max(id)"})
    counted = frame.groupBy("id").agg({"id": "count"}).withColumnRenamed("count(id)", "found")
    both = counted.join(spark.range(10).repartition(2, "id"), "id", "full_outer")
    assert both.where("found > 0").count() == rows
    assert watch.get == {"number": rows, "most": rows - 1 if rows else None}
