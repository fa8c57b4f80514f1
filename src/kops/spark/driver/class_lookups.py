"""Caches the Java classes that PySpark looks up by name.

For every ``expr()``, every list of columns, and a dozen times at the end of every Java iterator, PySpark asks the JVM again what a name
is. The JVM then searches for it in each package that PySpark imported, in each of 250 jars: a fifth of the driver's work for small data.
Names that are already attributes of py4j's view of the JVM are not looked up.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from kops.spark.driver.pyspark_internals import jvm as jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASSES = {
    "PythonUtils": ("toSeq", "toList", "getBroadcastThreshold"),
    "functions": ("col",),
    "org.apache.spark.sql.functions": ("expr", "col", "lit"),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession",),
    "org.apache.spark.sql.Observation": (),
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin": ("set", "clear"),
}
"""Names as PySpark writes them, and the methods used of each."""
_PACKAGES = ("py4j", "reflection", "TypeUtil", "isInstanceOf")


def remember_classes(session: SparkSession) -> None:
    """Look them up; names that this PySpark does not have are skipped."""
    jvm = jvm_of(session)
    for name, methods in _CLASSES.items():
        with contextlib.suppress(Exception):  # a PySpark of another version looks names up as it always did
            _kept(_kept(jvm, name), *methods)
    with contextlib.suppress(Exception):
        place = jvm
        for name in _PACKAGES:
            place = _kept(place, name)


def _kept(owner: Any, *names: str) -> Any:
    """Return the last of these nested attributes, after storing each of them in its owner."""
    found = owner
    for name in names:
        found = getattr(owner, name)
        setattr(owner, name, found)
    return found
