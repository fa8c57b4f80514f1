"""Open transactions that block ``read_committed`` consumers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kops.core.findings import Finding, Severity, command, partitions_text
from kops.core.groups.lag import OpenTransaction, age_text
from kops.core.models import TopicPartition

DEFAULT_TIMEOUT_MS = 60_000
"""``transaction.timeout.ms`` of the producers, where the coordinator does not report it."""


def overdue(found: OpenTransaction, now: int) -> bool:
    """Whether it has been open for longer than its time-out, at which its coordinator should have aborted it."""
    return (found.age(now) or 0) > (found.timeout_ms or DEFAULT_TIMEOUT_MS)


def is_hanging(found: OpenTransaction, now: int) -> bool:
    """Whether no coordinator will end it. A transaction that is not yet overdue may just not have reached its coordinator."""
    return found.hanging and overdue(found, now)


def end_text(found: OpenTransaction, now: int) -> str:
    """Describe what will end a transaction."""
    if is_hanging(found, now):
        return "no coordinator will end it; `kops transactions abort` does"
    age, ends = found.age(now), "it ends when its producer commits or aborts it, or another one takes over its transactional id"
    if found.timeout_ms is None or age is None:
        return ends
    left = found.timeout_ms - age
    return f"{ends}, or by its time-out {f'in {age_text(left)}' if left > 0 else f'of {age_text(found.timeout_ms)}, which is over'}"


def abort_command(found: OpenTransaction, partition: TopicPartition) -> str:
    """Return the command that ends a hanging transaction in a partition."""
    return command("transactions", "abort", str(partition), "--start-offset", str(found.start_offset))


def transaction_findings(held: Mapping[TopicPartition, OpenTransaction], now: int) -> Iterator[Finding]:
    """Yield a finding for each producer with an open transaction: a note as long as it is not overdue.

    :param held: the transaction that holds back the last stable offset of each partition
    :param now: milliseconds since the epoch
    """
    by_producer: dict[tuple[int, int, bool], list[TopicPartition]] = {}
    for partition, found in held.items():
        by_producer.setdefault((found.producer_id, found.producer_epoch, found.hanging), []).append(partition)
    for partitions in by_producer.values():
        oldest = max((held[one] for one in partitions), key=lambda found: found.age(now) or 0)
        aborts = [abort_command(held[one], one) for one in sorted(partitions)] if is_hanging(oldest, now) else []
        yield _finding(sorted(partitions), held[min(partitions)], oldest, now, aborts)


def _finding(partitions: list[TopicPartition], found: OpenTransaction, oldest: OpenTransaction, now: int, aborts: Sequence[str]) -> Finding:
    """Report the open transactions of a producer.

    :param found: its transaction in the first of the partitions
    :param oldest: the one that has been open longest
    :param aborts: the commands that end it, if its coordinator does not
    """
    age = oldest.age(now)
    severity, check, how = Severity.NOTE, "open_transaction", ""
    if is_hanging(oldest, now):
        severity, check, how = Severity.CRITICAL, "hanging_transaction", ""
    elif overdue(oldest, now):
        severity, how = Severity.WARNING, ", longer than its time-out"
    since = "is open" if age is None else f"has been open for {age_text(age)}"
    at = f"from offset {found.start_offset} of {partitions[0]} on"
    end = end_text(found, now)
    text = f"the transaction of {found.producer} {since}{how}, {at}: readers of committed data wait there; {end}"
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
    return Finding(severity, check, partitions_text(partitions), text, (*aborts, command("topics", "offsets", *topics[:3])), facts)
