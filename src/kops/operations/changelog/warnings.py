"""What the reader of a changelog should know about it, one sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kops.core.extras import installed
from kops.core.murmur2 import partition_for
from kops.core.records.models import Record
from kops.formats.streams import store_types as types
from kops.operations.changelog.layouts import Layout
from kops.operations.changelog.target import Target
from kops.operations.changelog.view import View
from kops.operations.records.rows import unstable_notes

COLUMNS_FROM = 20_000
"""From this many keys on, hashing them as an Arrow column is worth importing Arrow, where it is installed."""


def warnings_of(view: View) -> list[str]:
    """Return what is unusual about a view, except keys in wrong partitions."""
    found = of_settings(view.target, view.layout)
    if not any("LogAppendTime" in sentence for sentence in found) and any(record.log_append_time for record in view.latest):
        found.append(_broker_time(view.target.topic))
    if view.unkeyed:
        found.append(f"left out because they have no key: {counted(view.unkeyed, 'record')}")
    return [*found, *unstable_notes(view.unstable)]


def of_settings(target: Target, layout: Layout) -> list[str]:
    """Return what a topic's settings mean for what is shown of it."""
    policy, topic = target.setting("cleanup.policy"), target.topic
    found = []
    if "compact" not in policy and layout.name != types.JOIN:
        found.append(f"{topic} is not compacted (cleanup.policy={policy}): it lacks keys that retention deleted, so it is not a changelog")
    elif "delete" in policy and "compact" in policy and not layout.has_time:
        found.append(f"{topic} is {policy}, as those of windowed and session stores are, and is read as {layout.name}")
    if "compact" in policy and int(target.setting("min.compaction.lag.ms") or 0) > 0 and layout.name != "versioned":
        found.append(f"{topic} has a compaction lag, as those of versioned stores have: of each key only what was written last is shown")
    if target.setting("message.timestamp.type") == "LogAppendTime":
        found.append(_broker_time(topic))
    return found


def misplaced(latest: Sequence[Record], layout: Layout, partitions: int) -> int:
    """Return how many live keys are in another partition than Kafka's default partitioner gives to the application's key."""
    return elsewhere(
        (
            (inner, record.partition)
            for record in latest
            if record.value is not None and (inner := layout.inner(record.key or b"")) is not None
        ),
        partitions,
    )


def elsewhere(placed: Iterable[tuple[bytes, int]], partitions: int) -> int:
    """Return how many keys are in another partition than murmur2 gives them.

    :param placed: keys and the partitions that they are in
    """
    found = list(placed)
    if len(found) < COLUMNS_FROM or not (installed("numpy") and installed("pyarrow")):
        return sum(partition_for(key, partitions) != partition for key, partition in found)
    import pyarrow

    from kops.formats.murmur2_columns import partitions_of

    given = partitions_of(pyarrow.array([key for key, _ in found], pyarrow.large_binary()), partitions).to_numpy()
    actual = pyarrow.array([partition for _, partition in found], pyarrow.int32()).to_numpy()
    return int((given != actual).sum())


def misplaced_note(count: int, keys: int) -> str:
    return (
        f"keys in another partition than murmur2 of the key gives: {count:,} of {keys:,}; "
        "normal where the input has its own partitioner or its key was changed without a repartition, wrong otherwise"
    )


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _broker_time(topic: str) -> str:
    return f"{topic} has timestamps of the broker (LogAppendTime): a store restored from it has the wrong timestamps"
