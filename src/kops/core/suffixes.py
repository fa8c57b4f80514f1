"""Which records of several logs are the last ones that were copied, in order, to one: told by what the copies say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

_MOST_WAYS = 1_000


def suffix_lengths(merged: Sequence[Hashable], logs: Sequence[Sequence[Hashable]]) -> list[tuple[int, ...]]:
    """Return how many of the last elements of each log make up a merged log, in every possible way.

    The members of one log keep their order in the merged one; those of several meet in any order.

    :param merged: what is known of each record: its timestamp
    :param logs: the same of each log, to its end
    :return: of each way one length a log; no way at all when it is made of other records; ``_MOST_WAYS`` at most are followed
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
