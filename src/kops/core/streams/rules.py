"""Rules of Kafka Streams that decide whether a store can be computed again, whoever computes it: by a state file or the program. Pure.

Each is one sentence and one name here, in the words of Kafka Streams. Which stores it applies to, a state file and a capture say in their
own ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from kops.core.findings import Finding, counted, names_text
from kops.core.streams.foreign_keys import mixes_up_foreign_keys
from kops.core.streams.verdict import doubt, obstacle, remark

TIMES_OF_SESSIONS = (3, 3)
"""From here on cached sessions are known to have their own times; ``CachingSessionStore`` of 2.8 takes that of the record at a flush."""


def flushed_sessions() -> Finding:
    """Return the remark about cached sessions before 3.3, which have the time of another record."""
    said = "its sessions have the time of the record at which the cache was flushed, and when that was is not known"
    return remark("flushed_sessions", said)


def forgotten_times(stores: Sequence[str], *, only_times: bool = True) -> Finding:
    """Name cached stores without timestamps: an aggregate has that of its latest record since the cache last held the key.

    :param only_times: values do not depend on it
    """
    said = "keep no timestamps, only their caches do, until the application is restarted or they are full"
    summary = f"these stores {said}: {', '.join(stores)}"
    return remark("forgotten_times", summary) if only_times else doubt("forgotten_times", summary)


def mixed_up_foreign_keys(version: Sequence[int], text: str, joins: Sequence[str] = ()) -> list[Finding]:
    """Name the foreign-key joins of releases in which they go wrong where a row's foreign key changes (KAFKA-18713, KAFKA-16407).

    :param text: the version as it is written
    :param joins: by name; none: there is one
    """
    if not mixes_up_foreign_keys(tuple(version)):
        return []
    why = "joins a row with nothing if the answer for its earlier foreign key comes last, and skips one whose foreign key is or was null"
    which = f": {', '.join(joins)}" if joins else ""
    return [doubt("foreign_keys", f"kafka-streams {text} {why} (KAFKA-18713, KAFKA-16407; fixed in 3.9.1, 4.0.1 and 4.1){which}")]


def lost_records(places: Sequence[str], *, windows: int = 0) -> Finding:
    """Say where the oldest records of the input are gone.

    :param places: partitions or topics, with the offset at which each begins where that is known
    :param windows: how many windows may have had some of them; 0: any key may
    """
    verb, which = "begins" if len(places) == 1 else "begin", f", and {windows:,} windows may have had some" if windows else ""
    said = f"older records of the input are gone{which}: {names_text(places, of='partitions')} {verb} above offset 0"
    return obstacle("lost_records", said, windows=windows)


def record_order(keys: int, of: int, why: Sequence[str], examples: str = "") -> Finding:
    """Say how many keys depend on an order of records that no log has.

    :param why: what leaves the order open, one sentence each
    """
    verb, such = "depends" if keys == 1 else "depend", f", such as {examples}" if examples else ""
    return doubt("record_order", f"{keys:,} of {counted(of, 'key')} {verb} on the order of records{such}: {'; '.join(why)}")


def late_records(records: str) -> Finding:
    """Say that records came late: an application that was restarted just before one has forgotten its stream time.

    :param records: how many, and what they came too late for
    """
    why = "an application that was restarted just before one of them had forgotten its stream time, and has counted it"
    return doubt("late_records", f"{records}: {why}")
