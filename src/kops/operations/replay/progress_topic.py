"""What replays and redrives have sent, stored where it does not expire: a compacted topic of kops on the cluster of the target.

Committed offsets expire (``offsets.retention.minutes``), and so do transactional ids (``transactional.id.expiration.ms``). The newest
record of a key of a compacted topic does not. A replay's records have the name of its group as key and are written in the transactions of
the records that it sends, so both exist or neither does. What a redrive is about to send, and what was sent back, is written outside of
transactions, before and after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.durations import duration_text
from kops.core.errors import AlreadyExists, AuthorizationFailed, KopsError, OperationFailed
from kops.core.models import NewRecord, NewTopic, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.topics.names import PROGRESS_TOPIC
from kops.core.topics.settings import POLICY
from kops.operations.engine.stable import wait_until_stable
from kops.operations.services import Services

SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "86400000"}
_PLACE = TopicPartition(PROGRESS_TOPIC, 0)
_RETENTION = "offsets.retention.minutes"
_MINUTE = 60_000


@dataclass(frozen=True)
class ProgressTopic:
    """Whether the topic can be used.

    :param create: it must be created first
    :param problem: why it cannot be used; empty when it can
    :param hint: what a user with the permission can do about it
    """

    create: bool = False
    problem: str = ""
    hint: str = ""

    @property
    def topic(self) -> str | None:
        """The topic's name, if it can be used."""
        return None if self.problem else PROGRESS_TOPIC


def find_progress_topic(services: Services) -> ProgressTopic:
    """Check whether the topic exists, or could be created."""
    try:
        if services.kafka.topics.existing([PROGRESS_TOPIC]):
            return _current(services)
        error = services.kafka.topics.create([_NEW], validate_only=True)[PROGRESS_TOPIC]
    except AuthorizationFailed as refused:
        return ProgressTopic(problem=refused.message, hint=_CREATION)
    if isinstance(error, AlreadyExists):
        return _current(services)
    return (
        ProgressTopic(create=True)
        if error is None
        else ProgressTopic(problem=f"{PROGRESS_TOPIC} is not there and cannot be created: {error.message}", hint=_CREATION)
    )


def create_progress_topic(services: Services) -> None:
    """Create the topic if it does not exist.

    :raises KopsError: when that fails
    """
    if services.kafka.topics.existing([PROGRESS_TOPIC]):
        return
    error = services.kafka.topics.create([_NEW])[PROGRESS_TOPIC]
    if error is not None and not isinstance(error, AlreadyExists):
        raise error


def write_notes(services: Services, known: Mapping[str, Any]) -> None:
    """Write a new record for some keys; None deletes a key.

    :raises OperationFailed: when the brokers reject it
    """
    records = [
        NewRecord(key.encode(), None if value is None else json.dumps(value).encode(), partition=0) for key, value in sorted(known.items())
    ]
    try:
        services.kafka.produce(PROGRESS_TOPIC, records)
    except AuthorizationFailed as refused:
        refused.hint = f"kops notes in {PROGRESS_TOPIC} what was sent: it needs READ and WRITE on that topic"
        raise


def read_notes(services: Services, prefix: str, *, committed: bool, settled: bool = True) -> dict[str, Any]:
    """Return the newest value of each key that begins with a prefix; nothing where the topic does not exist.

    :param committed: leave out what transactions aborted or have open; without it, what was written outside of them can be read even then
    :param settled: wait for open transactions first, so that nothing committed is missed
    :raises OperationFailed: when kops did not write a record
    """
    if not services.kafka.topics.existing([PROGRESS_TOPIC]):
        return {}
    bound = services.kafka.offsets.bounds([_PLACE])[_PLACE]
    isolation = "read_uncommitted"
    end = bound.log_end_offset
    if committed:
        isolation = "read_committed"
        if settled:
            wait_until_stable(services, {_PLACE: end})
        end = min(end, services.kafka.offsets.bounds([_PLACE], isolation=isolation)[_PLACE].log_end_offset)
    found: dict[str, bytes | None] = {}
    reader = services.kafka.records.parts({_PLACE: OffsetRange(bound.log_start_offset, end)}, ("key", "value"), isolation=isolation)
    for batch in reader:
        for key, value in batch:
            name = (key or b"").decode(errors="replace")
            if name.startswith(prefix):
                found[name] = value
    try:
        return {name: json.loads(value) for name, value in found.items() if value is not None}
    except ValueError as broken:
        raise OperationFailed(
            f"{PROGRESS_TOPIC} has records that kops did not write: {broken}", hint=f"`kops records consume {PROGRESS_TOPIC}` shows them"
        ) from broken


def offsets_kept(services: Services) -> int | None:
    """Return for how many milliseconds brokers keep the committed offsets of groups without members; None when that is not visible."""
    cluster = services.kafka.cluster()
    try:
        found = services.kafka.topics.broker_settings(cluster.brokers[0].id).get(_RETENTION)
    except KopsError:
        return None
    return int(found.value) * _MINUTE if found and found.value else None


def progress_notes(services: Services, progress_topic: ProgressTopic) -> list[str]:
    """Return what a plan says about how long progress stays known; nothing if that is for ever and no topic has to be created."""
    if progress_topic.problem:
        kept = f"for {kept_text(services)} after the last commit"
        return [f"how far it came is known {kept}, and `kops replay resume` refuses after that ({progress_topic.problem})"]
    settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
    return (
        [f"creates {PROGRESS_TOPIC} (1 partition, {settings}): how far replays came does not expire there"] if progress_topic.create else []
    )


def kept_text(services: Services) -> str:
    """Return for how long brokers keep committed offsets of groups without members."""
    kept = offsets_kept(services)
    return f"{_RETENTION} of the brokers" if kept is None else f"{duration_text(kept)} ({_RETENTION})"


_CREATION = f"ask someone who may create it: `kops topics create {PROGRESS_TOPIC} --partitions 1 --config cleanup.policy=compact`"
_NEW = NewTopic(PROGRESS_TOPIC, 1, None, SETTINGS)


def _current(services: Services) -> ProgressTopic:
    policy = services.kafka.topics.settings([PROGRESS_TOPIC])[PROGRESS_TOPIC].get(POLICY)
    if policy is not None and policy.value == "compact":
        return ProgressTopic()
    return ProgressTopic(
        problem=f"{PROGRESS_TOPIC} has cleanup.policy={policy.value if policy else None}, so brokers would delete what it holds",
        hint=f"`kops topics alter {PROGRESS_TOPIC} --config cleanup.policy=compact`",
    )
