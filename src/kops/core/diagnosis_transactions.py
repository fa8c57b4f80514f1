"""Open transactions that keep readers of committed data from going on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kops.core.findings import Finding, Severity, command, places_text
from kops.core.lag import OpenTransaction, age_text
from kops.core.models import TopicPartition

DEFAULT_TIMEOUT_MS = 60_000
"""``transaction.timeout.ms`` of the producers, where the coordinator does not tell."""


def transaction_findings(held: Mapping[TopicPartition, OpenTransaction], now: int) -> Iterator[Finding]:
    """Yield a finding for each producer whose transaction is hanging, or open for longer than it may.

    :param held: the transaction that holds the last stable offset of each partition
    :param now: milliseconds since the epoch
    """
    by_producer: dict[tuple[int, int, bool], list[TopicPartition]] = {}
    for partition, found in held.items():
        by_producer.setdefault((found.producer_id, found.producer_epoch, found.hanging), []).append(partition)
    for partitions in by_producer.values():
        oldest = max((held[one] for one in partitions), key=lambda found: found.age(now) or 0)
        age = oldest.age(now) or 0
        if age > (oldest.timeout_ms or DEFAULT_TIMEOUT_MS):
            yield _finding(sorted(partitions), held[min(partitions)], age)


def _finding(partitions: list[TopicPartition], found: OpenTransaction, age: int) -> Finding:
    """Return the finding about a producer.

    :param found: its transaction in the first of the partitions
    """
    who = found.transactional_id or f"producer {found.producer_id}"
    severity, check, how = Severity.WARNING, "open_transaction", "longer than its time-out"
    if found.hanging:
        severity, check, how = Severity.CRITICAL, "hanging_transaction", "no coordinator will end it"
    text = f"the transaction of {who} has been open for {age_text(age)}, {how}: readers of committed data stop at its first record"
    if found.hanging:
        place = f"--topic {partitions[0].topic} --partition {partitions[0].partition} --start-offset {found.start_offset}"
        text += f"; Apache's `kafka-transactions abort {place}` ends it"
    topics = list(dict.fromkeys(one.topic for one in partitions))
    facts = {
        "partitions": [str(one) for one in partitions],
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.state,
        "age_ms": age,
        "start_offset": found.start_offset,
    }
    return Finding(severity, check, places_text(partitions), text, (command("topics", "offsets", *topics[:3]),), facts)
