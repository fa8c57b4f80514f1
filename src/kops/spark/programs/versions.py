"""Versioned stores (KIP-889) of an application's own program: of the log that it writes, the versions that can still be queried.

Their rows are those of ``kops.spark.stores.versioned``: in a key, the version's timestamp follows the key of the store, and before a value
stands 1, or 0 for a deletion. A log has all versions, those too that the store never accepted since they came too late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.spark.reading.gathering import newest_of_each_key

if TYPE_CHECKING:
    import pyarrow

_DELETED, _VALUE = b"\x00", b"\x01"
_TIME_BYTES = 8


class Versions:
    """The versions of a store, of which each key can be looked at by itself once the whole log was seen: their times are compared with its.

    :param history_ms: how long the store keeps overwritten values
    """

    def __init__(self, history_ms: int) -> None:
        self._history_ms = history_ms
        self._newest: int | None = None

    def accepted(self, log: pyarrow.Table) -> pyarrow.Table:
        """Return the records of the log's next part that the store accepts.

        :param log: key, value (null: a deletion), timestamp, headers, in the order in which they were written
        """
        import numpy
        import pyarrow

        if not log.num_rows:
            return log
        times = log["timestamp"].to_numpy()
        reached = numpy.maximum.accumulate(times if self._newest is None else numpy.maximum(times, self._newest))
        self._newest = int(reached[-1])
        accepted = times >= reached - self._history_ms
        return log if accepted.all() else log.filter(pyarrow.array(accepted))

    def of(self, log: pyarrow.Table) -> pyarrow.Table:
        """Return the rows of some keys, each version once, by key and time.

        :param log: all that was accepted of them
        """
        import numpy
        import pyarrow
        from pyarrow import compute

        if not log.num_rows or self._newest is None:
            return log
        taken = log.combine_chunks()
        texts = taken["timestamp"].to_numpy().astype(">i8").tobytes()
        stamps = pyarrow.array([texts[at : at + _TIME_BYTES] for at in range(0, len(texts), _TIME_BYTES)], pyarrow.binary())
        named = taken.append_column("of", taken["key"])
        named = named.set_column(0, "key", compute.binary_join_element_wise(taken["key"].combine_chunks(), stamps, b""))
        last = newest_of_each_key(named.combine_chunks()).sort_by([("of", "ascending"), ("timestamp", "ascending")])
        moments = last["timestamp"].to_numpy()
        of = last["of"].combine_chunks().dictionary_encode().indices.to_numpy()
        same_as_next = numpy.append(of[1:] == of[:-1], False)
        until = numpy.append(moments[1:], 0)
        valid = last.filter(pyarrow.array(~same_as_next | (until > self._newest - self._history_ms))).combine_chunks()
        of = valid["of"].combine_chunks().dictionary_encode().indices.to_numpy()
        is_value = valid["value"].is_valid().to_numpy(zero_copy_only=False)
        had_value = numpy.insert((of[1:] == of[:-1]) & is_value[:-1], 0, False)
        # The first version with the newest timestamp stays even if it deletes nothing: it records the stream time of the store.
        kept = valid.filter(pyarrow.array(is_value | had_value | (valid["timestamp"].to_numpy() == self._newest)))
        return kept.set_column(1, "value", _flagged(kept["value"].combine_chunks())).drop_columns(["of"])


def as_records(rows: pyarrow.Table) -> pyarrow.Table:
    """Return the records that are to be written for such rows: several of a key, in the order of time."""
    import pyarrow

    ordered = rows.sort_by([("timestamp", "ascending")])
    keys = [key[:-_TIME_BYTES] for key in ordered["key"].to_pylist()]
    values = [value[1:] if value[:1] == _VALUE else None for value in ordered["value"].to_pylist()]
    ordered = ordered.set_column(0, "key", pyarrow.array(keys, pyarrow.binary()))
    return ordered.set_column(1, "value", pyarrow.array(values, pyarrow.binary()))


def _flagged(values: pyarrow.Array) -> pyarrow.Array:
    from pyarrow import compute

    found = compute.binary_join_element_wise(_VALUE, values, b"")
    return compute.fill_null(found, _DELETED)
