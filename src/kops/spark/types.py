"""PySpark's types, for the annotations of those who hand them on; to be imported for type checking only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession  # noqa: TC004 - handed on

__all__ = ["DataFrame", "Row", "SparkSession"]
