"""Counts taken by a query while its rows pass through."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

_SOON_SECONDS = 0.2
_PATIENCE_SECONDS = 5.0


def watched(frame: DataFrame, counts: Mapping[str, str]) -> tuple[DataFrame, Watch]:
    """Return the same rows, and a watch that has counts of them once a query has computed them.

    :param counts: Spark SQL aggregates by name
    """
    from pyspark.sql import Observation, functions

    columns = [functions.expr(f"{count} as {name}") for name, count in counts.items()]
    observation = Observation()
    return frame.observe(observation, *columns), Watch(frame, columns, observation)


def sums(names: Iterable[str]) -> dict[str, str]:
    """Return counts for ``watched``: the sum of each of these columns, which without rows would be null."""
    return {name: f"coalesce(sum({name}), 0)" for name in names}


def by_partition(condition: str, partitions: int) -> str:
    """Return a Spark SQL aggregate that counts rows by their ``partition``, for ``counts_by_partition`` to parse.

    A histogram with one bin per partition is exact, and the only grouped count that an observation can make. The bin of a partition may
    appear twice, a rounding error apart. As JSON it also passes through Spark Connect.

    :param partitions: their number
    """
    return f"to_json(histogram_numeric(if({condition}, cast(partition as double), null), {partitions + 1}))"


def counts_by_partition(observed: str | None) -> dict[int, int]:
    """Parse the result of ``by_partition``; empty if there was no such row."""
    found: dict[int, int] = {}
    for each in json.loads(observed or "[]"):
        number = round(each["x"])
        found[number] = found.get(number, 0) + round(each["y"])
    return found


class Watch:
    """Counts of a DataFrame's rows: reported by Spark after a query (``Observation``), or counted again if it does not report them.

    It does not if adaptive execution found that there are no rows and replaced their plan while the query ran.
    """

    def __init__(self, frame: DataFrame, columns: list[Column], observation: Observation) -> None:
        self._frame, self._columns, self._observation = frame, columns, observation
        self._found: dict[str, Any] | None = None

    @property
    def get(self) -> dict[str, Any]:
        """Return the counts by name; only after a query has computed the rows."""
        if self._found is None:
            self._found = self._reported() or self._frame.agg(*self._columns).collect()[0].asDict()
        return self._found

    def _reported(self) -> dict[str, Any] | None:
        answer = _Answer(self._observation)
        if not answer.within(_SOON_SECONDS):
            _wait_for_turn(self._frame.sparkSession)
            answer.within(_SOON_SECONDS)
        return answer.counts


def _wait_for_turn(session: SparkSession) -> None:
    """Wait until Spark has reported on all earlier queries: it reports in their order, so a query that is started now is reported last."""
    from pyspark.sql import Observation, functions

    last = Observation()
    session.range(1).observe(last, functions.expr("count(*) as rows")).collect()
    _Answer(last).within(_PATIENCE_SECONDS)


class _Answer:
    """What an observation reports; requested in a thread, because the request blocks, possibly forever."""

    def __init__(self, observation: Observation) -> None:
        self.counts: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._ask, args=(observation,), name="kops-observation", daemon=True)
        self._thread.start()

    def _ask(self, observation: Observation) -> None:
        from py4j.protocol import Py4JError

        # Of a query that failed Spark 4.2 has an empty row, which its own bridge to Python refuses (PythonSQLUtils.toPyRow).
        with contextlib.suppress(Py4JError):
            self.counts = observation.get

    def within(self, seconds: float) -> bool:
        """Wait at most this long; return whether the report has arrived."""
        self._thread.join(seconds)
        return not self._thread.is_alive()
