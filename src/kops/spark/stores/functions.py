"""kops' own functions for Spark SQL, where Java behaves differently from Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# String.split(regex) drops trailing empty parts, and returns the text itself if nothing matches; Spark's split keeps them.
_PARTS = "split(text, regex)"
_LAST_WITH_LETTERS = f"array_max(transform({_PARTS}, (part, at) -> if(part = '', 0, at + 1)))"
FUNCTIONS = {
    "java_split": (
        "text STRING, regex STRING",
        "ARRAY<STRING>",
        f"if(size({_PARTS}) < 2, {_PARTS}, slice({_PARTS}, 1, {_LAST_WITH_LETTERS}))",
    )
}
"""By name: parameters, type and SQL of the result."""


def define_functions(session: SparkSession, expression: str) -> None:
    """Define, for this session, those functions that an expression uses."""
    for name, (parameters, result, body) in FUNCTIONS.items():
        if name in expression:
            session.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {name}({parameters}) RETURNS {result} RETURN {body}")
