"""Matching the tail of a merged log with the tails of the logs that it was merged from, by the records' timestamps. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

_MOST_WAYS = 1_000


def suffix_lengths(merged: Sequence[Hashable], logs: Sequence[Sequence[Hashable]]) -> list[tuple[int, ...]]:
    """Return how many of the last elements of each log make up a merged log, in every possible way.

    Elements of one log keep their order in the merged log; those of different logs interleave in any order.

    :param merged: a key for each record, such as its timestamp
    :param logs: the same for each log, up to its end
    :return: one length per log for each way, empty if there is no match; only two if there are more than ``_MOST_WAYS``
    """
    ways = {(0,) * len(logs)}
    for known in reversed(merged):
        ways = {
            (*way[:at], way[at] + 1, *way[at + 1 :])
            for way in ways
            for at, log in enumerate(logs)
            if way[at] < len(log) and log[len(log) - 1 - way[at]] == known
        }
        if len(ways) > _MOST_WAYS:
            return sorted(ways)[:2]
    return sorted(ways)
