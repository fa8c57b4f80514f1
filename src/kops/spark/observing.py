"""What a query counts as its rows pass by."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PATIENCE_SECONDS = 5.0
"""How long Spark is waited for; it tells within milliseconds of the query's end, or, of a query whose plan it made empty, never."""


class Watch:
    """Counts of a DataFrame's rows, told by Spark once a query has computed them (``Observation``), or counted again where it does not."""

    def __init__(self) -> None:
        from pyspark.sql import Observation

        self._observation = Observation()
        self._found: dict[str, Any] | None = None

    def on(self, frame: DataFrame, *counts: Column) -> DataFrame:
        """Return the same rows, counted as they pass by.

        :param counts: named aggregates
        """
        self._frame, self._counts = frame, counts
        return frame.observe(self._observation, *counts)

    @property
    def get(self) -> dict[str, Any]:
        """Return the counts by their names; to be asked for after a query has computed the rows."""
        if self._found is None:
            self._found = self._told() or self._frame.agg(*self._counts).collect()[0].asDict()
        return self._found

    def _told(self) -> dict[str, Any] | None:
        answers: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: answers.append(self._observation.get), name="kops-observation", daemon=True)
        asking.start()
        asking.join(PATIENCE_SECONDS)
        return answers[0] if answers else None
