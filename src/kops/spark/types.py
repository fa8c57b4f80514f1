"""PySpark's types for annotations outside of ``kops.spark``; only imported for type checking."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext  # noqa: TC004 - re-exported
    from pyspark.sql import DataFrame, Row, SparkSession  # noqa: TC004 - re-exported

__all__ = ["DataFrame", "Row", "SparkContext", "SparkSession"]
