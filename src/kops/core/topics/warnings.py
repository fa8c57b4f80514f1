"""Warnings about a topic to be created or changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kops.core.durations import duration_text
from kops.core.findings import names_text
from kops.core.topics.settings import MIN_IN_SYNC, POLICY, RETENTION, UNCLEAN, readable_value

MAX_MESSAGE = "max.message.bytes"
TOMBSTONES = "delete.retention.ms"
SHORT_RETENTION_MS = 3_600_000
"""Below an hour, records are lost to a consumer that has to be restarted by hand."""


@dataclass(frozen=True)
class EffectiveSettings:
    """The effective settings of a topic, existing or planned.

    :param replication_factor: None if only the brokers know
    :param settings: all that matter, including the brokers' defaults
    :param given: the settings that are set on the topic itself
    """

    name: str
    replication_factor: int | None
    settings: Mapping[str, str]
    given: Mapping[str, str]


def warnings_for(topics: Sequence[EffectiveSettings], broker_count: int) -> list[str]:
    """Return what the approver should know, one sentence each; a sentence that is true of several topics comes once."""
    return grouped(
        (topic.name, text) for topic in topics for text in (*_settings(topic, broker_count), *_first_records(topic), *_name(topic.name))
    )


def change_warnings(changes: Sequence[tuple[EffectiveSettings, EffectiveSettings]], broker_count: int) -> list[str]:
    """Return warnings about what becomes unsafe; ``changes`` holds each topic before and after its change."""
    return grouped((after.name, text) for before, after in changes for text in _change(before, after, broker_count))


def grouped(found: Iterable[tuple[str, str]]) -> list[str]:
    """Merge warnings about topics: each comes once, with all topics that it is true of.

    :param found: name and sentence
    """
    names: dict[str, list[str]] = {}
    for name, text in found:
        names.setdefault(text, []).append(name)
    return [f"{names_text(concerned)}: {text}" for text, concerned in names.items()]


def _change(before: EffectiveSettings, after: EffectiveSettings, broker_count: int) -> Iterator[str]:
    known = set(_settings(before, broker_count))
    yield from (text for text in _settings(after, broker_count) if text not in known)
    old, new = _policies(before), _policies(after)
    if old is not None and new is not None:
        if "compact" in new - old:
            yield "compaction keeps the latest record of each key and deletes the others, and all without a key, for good"
        if "compact" in old - new and (after.settings.get(RETENTION, "").isdigit() or after.settings.get("retention.bytes", "").isdigit()):
            yield "without compaction the latest records of keys expire like all others: tables and state read from it lose them"
        if "delete" in new and not old:
            yield f"records begin to expire: retention.ms is {readable_value(RETENTION, after.settings.get(RETENTION, '?'))}"
    if _number(after, MAX_MESSAGE) < _number(before, MAX_MESSAGE):
        yield f"{MAX_MESSAGE} shrinks: larger batches of producers are rejected from now on"
    if _number(after, TOMBSTONES) < _number(before, TOMBSTONES) and "compact" in (new or ()):
        yield f"{TOMBSTONES} shrinks: a consumer that reads for longer than that misses deletions of keys"


def _policies(topic: EffectiveSettings) -> set[str] | None:
    policy = topic.settings.get(POLICY)
    return None if policy is None else set(policy.split(",")) - {""}


def _number(topic: EffectiveSettings, name: str) -> int:
    value = topic.settings.get(name, "")
    return int(value) if value.isdigit() else 0


def _settings(topic: EffectiveSettings, broker_count: int) -> list[str]:
    return [*_replication(topic, broker_count), *_cleanup(topic), *_unclean(topic)]


def _replication(topic: EffectiveSettings, broker_count: int) -> Iterator[str]:
    factor, minimum = topic.replication_factor, topic.settings.get(MIN_IN_SYNC)
    if factor is None:
        return
    if factor == 1 and broker_count > 1:
        yield f"replication factor 1 on a cluster of {broker_count} brokers: records are lost with the disk of one of them"
    if minimum is None or not minimum.isdigit():
        return
    if int(minimum) > factor:
        yield f"min.insync.replicas {minimum} is above the replication factor {factor}: producers with acks=all can write nothing"
    elif int(minimum) == factor > 1:
        yield f"min.insync.replicas {minimum} equals the replication factor: producers with acks=all stop as soon as one broker is down"


def _cleanup(topic: EffectiveSettings) -> Iterator[str]:
    policies = _policies(topic)
    if policies is None:
        return
    retention = topic.settings.get(RETENTION, "")
    if not policies:
        yield "an empty cleanup.policy keeps every record for ever"
    if policies == {"compact"} and RETENTION in topic.given:
        yield "retention.ms has no effect on a topic that is only compacted; cleanup.policy=compact,delete expires records too"
    if "delete" in policies and retention.isdigit():
        if policies == {"compact", "delete"}:
            yield f"a key that is not written again within {duration_text(int(retention))} disappears, its latest value too"
        if int(retention) < SHORT_RETENTION_MS:
            yield f"records are deleted after {duration_text(int(retention))}: a consumer that is down for longer misses them"


def _first_records(topic: EffectiveSettings) -> Iterator[str]:
    if "compact" in (_policies(topic) or ()):
        yield "compaction needs a key on every record, and none is in sight yet: producers that send no key are rejected"


def _unclean(topic: EffectiveSettings) -> Iterator[str]:
    if topic.settings.get(UNCLEAN) == "true":
        yield "unclean.leader.election.enable=true: records that were acknowledged can be lost when brokers fail"


def _name(name: str) -> Iterator[str]:
    if "." in name and "_" in name:
        yield "the name has both '.' and '_', which are the same in Kafka's metric names: best use only one of them"
    if name.startswith("__"):
        yield "names that begin with __ are those of Kafka's own topics"
