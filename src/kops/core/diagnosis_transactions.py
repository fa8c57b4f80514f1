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
    by_producer: dict[tuple[int, int], list[TopicPartition]] = {}
    for partition, found in held.items():
        by_producer.setdefault((found.producer_id, found.producer_epoch), []).append(partition)
    for partitions in by_producer.values():
        oldest = max((held[one] for one in partitions), key=lambda found: found.age(now) or 0)
        hanging = [one for one in partitions if held[one].hanging]
        age, limit = oldest.age(now) or 0, oldest.timeout_ms or DEFAULT_TIMEOUT_MS
        if hanging and age > limit:
            yield _finding(Severity.CRITICAL, "hanging_transaction", sorted(hanging), held[hanging[0]], age)
        elif age > limit:
            yield _finding(Severity.WARNING, "open_transaction", sorted(partitions), oldest, age)


def _finding(severity: Severity, check: str, partitions: list[TopicPartition], found: OpenTransaction, age: int) -> Finding:
    who = found.transactional_id or f"producer {found.producer_id}"
    how = "no coordinator will end it" if check == "hanging_transaction" else "longer than its time-out"
    text = f"the transaction of {who} has been open for {age_text(age)}, {how}: readers of committed data stop at its first record"
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
