"""Records that wait in a repartition topic: the application will process them, so they must not count yet.

Records there beyond the committed offset were sent by the application from input that it has committed. From one partition of that
input, the records of a key are sent in the order of their offsets, so those that wait are its last ones with that key; their
timestamps, which the repartition topic has too, show how many come from each partition. They are left out of the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.core.models import TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.streams.local_state import CATCH_UP
from kops.core.suffixes import suffix_lengths
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.compute import job_of
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.schemas import with_schemas
from kops.operations.state.snapshot_topics import beyond_committed, unprocessed

if TYPE_CHECKING:
    from kops.spark.stores.repartition import SentRecord

_MOST = 200_000
"""The maximum number of waiting records that are held in memory."""
_FOREIGN_KEY = re.compile(r"-subscription-(registration|response)\b.*-topic$", re.IGNORECASE)
"""Matches the topics between the sides of a foreign-key join (``KTableImpl.doJoinOnForeignKey``)."""
_ANY_ORDER = ("count",)
"""Aggregates for which only key and time of a record matter."""

Waiting = Mapping[bytes, Sequence[int]]
"""Timestamps of the records that wait, by key, in their order."""


def without_waiting(
    services: Services, engine: Engine, state_file: StateFile, facts: StoreFacts, cut: InputOffsets, *, skip_undecodable: bool
) -> StoreFacts:
    """Return a store's facts, with the records of its input that still wait in its repartition topic.

    :param services: include the topics that a plan will create
    :raises Refused: when the waiting records cannot be determined
    """
    store = facts.store
    if facts.held:  # a snapshot is only taken when nothing waits
        return facts
    waiting, places = _waiting(services, state_file, facts, cut)
    if not waiting:
        return facts
    hold = "holds" if len(places) == 1 else "hold"
    where = f"{', '.join(map(str, places))} {hold} records not processed by {state_file.application}; they would count twice"
    why = _never(store)
    if why:
        raise Refused(f"{where}, and {why}", hint=CATCH_UP)
    sent = _sent(engine, state_file, facts, cut, waiting, skip_undecodable=skip_undecodable)
    found = _matched(store, waiting, sent, where)
    later = sorted((place, offset) for place, offsets in found.items() for offset in offsets if offset >= cut.offsets[place])
    if later:
        place, offset = later[0]
        raise Refused(
            f"{where}; {place} is read again from offset {cut.offsets[place]} on, so the record of offset {offset} would count twice",
            hint=f"name a later time; or {CATCH_UP}",
        )
    return replace(facts, waiting=found)


def _never(store: Store) -> str:
    """Return why waiting records can never be determined; empty when they can."""
    if store.table is not None:
        return "of a table its changes wait there, which are not records of its topics"
    if store.explode:
        return "a record makes several there, of which only some may wait"
    return ""


def _waiting(services: Services, state_file: StateFile, facts: StoreFacts, cut: InputOffsets) -> tuple[Waiting, list[TopicPartition]]:
    """Read the waiting records; markers of transactions are not records."""
    topic = facts.store.repartition_topic
    if topic is None:
        return {}, []
    partitions = [TopicPartition(topic, number) for number in range(facts.tasks)]
    ranges = beyond_committed(services, partitions, cut.committed, isolation=state_file.isolation)
    waiting: dict[bytes, list[int]] = {}
    places: set[TopicPartition] = set()
    count = 0
    for batch in services.kafka.records.read(ranges, isolation=state_file.isolation):
        for record in batch:
            count += 1
            places.add(TopicPartition(topic, record.partition))
            waiting.setdefault(record.key or b"", []).append(record.timestamp or 0)
        if count > _MOST:
            raise Refused(
                f"{topic} holds more than {_MOST:,} records not processed by {state_file.application}; they would count twice",
                hint=CATCH_UP,
            )
    return waiting, sorted(places)


def _sent(
    engine: Engine, state_file: StateFile, facts: StoreFacts, cut: InputOffsets, waiting: Waiting, *, skip_undecodable: bool
) -> dict[bytes, list[SentRecord]]:
    """Return the records that were sent on last, for those keys of which some wait."""
    from kops.spark.driver.failures import explained
    from kops.spark.stores.repartition import last_sent

    sent_from = {place: found.offset for place, found in cut.committed.items()}
    up_to_commits = replace(cut, offsets={place: sent_from.get(place, 0) for place in cut.offsets})
    kafka = engine.kafka()
    (job,) = with_schemas(engine.services, kafka, [job_of(state_file, facts, up_to_commits, skip_undecodable=skip_undecodable)])
    engine.services.progress.step(f"looking for {sum(map(len, waiting.values())):,} records that wait in {facts.store.repartition_topic}")
    by_key: dict[bytes, list[SentRecord]] = {}
    with explained(f"compute {facts.store.name}"):
        for sent in last_sent(kafka, job, {key: len(times) for key, times in waiting.items()}):
            by_key.setdefault(sent.key, []).append(sent)
    return by_key


def _matched(
    store: Store, waiting: Waiting, sent: Mapping[bytes, Sequence[SentRecord]], where: str
) -> dict[TopicPartition, tuple[int, ...]]:
    offsets: dict[TopicPartition, list[int]] = {}
    for key, times in waiting.items():
        for one in _chosen(key, times, sent.get(key, ()), where, any_will_do=store.aggregate.kind in _ANY_ORDER):
            offsets.setdefault(TopicPartition(one.topic, one.partition), []).append(one.offset)
    return {place: tuple(sorted(some)) for place, some in offsets.items()}


def _chosen(key: bytes, times: Sequence[int], sent: Iterable[SentRecord], where: str, *, any_will_do: bool) -> list[SentRecord]:
    """Return the records of a key that wait."""
    logs: dict[tuple[str, int], list[SentRecord]] = {}
    for one in sent:
        logs.setdefault((one.topic, one.partition), []).append(one)
    ways = suffix_lengths(times, [[one.timestamp for one in log] for log in logs.values()])
    if not ways:
        what = f"the {len(times)} with the key {key!r} are not the last ones of the input that is committed"
        raise Refused(
            f"{where}, and {what}: after a crash an at-least-once application sends records again, or `where` and"
            " `key_by` are others than the application's",
            hint=CATCH_UP,
        )
    if len(ways) > 1 and not any_will_do:
        raise Refused(
            f"{where}, and of the key {key!r}, which several partitions feed, it is unknown which they are",
            hint=CATCH_UP,
        )
    return [one for log, length in zip(logs.values(), ways[0], strict=True) for one in log[len(log) - length :]]


def pending_answers(services: Services, state_file: StateFile, cut: InputOffsets) -> list[str]:
    """Return where a foreign-key join has subscriptions or responses to process: its result is computed as if it had processed them."""
    if not any(store.table and store.table.foreign for store in state_file.stores):
        return []
    begin = f"{state_file.application}-"
    topics = [name for name in services.kafka.topics.names() if name.startswith(begin) and _FOREIGN_KEY.search(name)]
    partitions = [place for topic in services.kafka.topics.existing(topics).values() for place in topic.places]
    left = unprocessed(services, partitions, cut.committed, isolation=state_file.isolation)
    return [
        f"{place} holds records from offset {start} to {end} not processed by {state_file.application}: the results of its foreign-key join"
        " are computed as if they were, and what the application holds may be behind"
        for place, (start, end) in sorted(left.items())
    ]
