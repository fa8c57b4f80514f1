"""Waits until what was written is visible to ``read_committed`` consumers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from kops.core.errors import KopsError, Refused, TimedOut
from kops.core.models import READ_COMMITTED, Bounds, TopicPartition
from kops.core.records.models import OffsetRange
from kops.operations.services import Services

PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.2


def own_transactions(application: str) -> str:
    """Return the prefix of the transactional ids with which kops writes the changelogs of an application."""
    return f"kops-{application}-"


def bounds_of_application(
    services: Services, places: Iterable[TopicPartition], *, isolation: str, writer: str | None = None
) -> Mapping[TopicPartition, Bounds]:
    """Return the bounds of an application's own topics: with ``read_committed`` those of what it has committed, hidden records included.

    :param writer: what the transactional ids of kops begin with; those that a killed kops left open are not waited for while they hide
        nothing but its own records, since the next one that writes ends them
    :raises Refused: when a transaction stays open that hides some
    """
    if isolation != READ_COMMITTED:
        return services.kafka.offsets.bounds(places)
    try:
        return settled_bounds(services, places, writer=writer)
    except TimedOut as late:
        raise Refused(late.message, hint=late.hint) from late


def settled_bounds(services: Services, places: Iterable[TopicPartition], *, writer: str | None = None) -> Mapping[TopicPartition, Bounds]:
    """Return the bounds of partitions, as ``read_committed`` has them, once no transaction hides what was committed by now.

    An open transaction hides all that follows, whoever wrote it; brokers write the markers of one after they answered its commit.

    :param writer: as of ``bounds_of_application``
    :raises TimedOut: as ``wait_until_stable``
    """
    bounds = services.kafka.offsets.bounds(places)
    return wait_until_stable(services, {place: bound.log_end_offset for place, bound in bounds.items()}, writer=writer)


def wait_until_stable(
    services: Services, ends: Mapping[TopicPartition, int], *, writer: str | None = None
) -> Mapping[TopicPartition, Bounds]:
    """Wait until the last stable offsets have reached these ends; return the bounds with those offsets.

    A transaction that a crash left open holds them back until the broker aborts it (``transaction.timeout.ms``).

    :param writer: as of ``bounds_of_application``
    :raises TimedOut: when one does so for too long
    """
    deadline, waits, alone = time.monotonic() + PATIENCE_SECONDS, False, set[TopicPartition]()
    while True:
        bounds = services.kafka.offsets.bounds(ends, isolation=READ_COMMITTED)
        behind = [partition for partition, end in ends.items() if bounds[partition].log_end_offset < end]
        if behind and writer is not None:
            hidden = {place: OffsetRange(bounds[place].log_end_offset, ends[place]) for place in behind if place not in alone}
            alone |= _with_one_writer(services, hidden, writer)
            behind = [place for place in behind if place not in alone]
            bounds = services.kafka.offsets.bounds(ends, isolation=READ_COMMITTED)  # what others held until now may be visible
        if not behind:
            return bounds
        first = f"the transaction that is open in {behind[0]} at offset {bounds[behind[0]].log_end_offset}"
        if time.monotonic() > deadline:
            raise TimedOut(
                f"waited {PATIENCE_SECONDS:.0f} s for {first}: it hides what follows",
                hint="brokers abort it after its transaction.timeout.ms; run the command again then. If it never ends, `kops diagnose"
                f" {behind[0].topic}` says how it is ended",
            )
        if not waits:
            services.progress.step(f"waiting for the end of {first}")
            waits = True
        time.sleep(_POLL_SECONDS)


def _with_one_writer(services: Services, hidden: Mapping[TopicPartition, OffsetRange], writer: str) -> set[TopicPartition]:
    """Return the partitions in which all hidden records are of a writer's open transactions, by the producer ids of their batches."""
    from kops.config.librdkafka import librdkafka_settings
    from kops.gateways.wire.batch_consumer import has_only

    try:
        found = services.kafka.transactions.open_in(hidden)
    except KopsError:  # such as brokers that do not answer this
        return set()
    own = {
        place: {one.producer_id for one in answer}
        for place, answer in found.items()
        if not isinstance(answer, KopsError) and answer and all((one.transactional_id or "").startswith(writer) for one in answer)
    }
    settings = librdkafka_settings(services.connection)
    return {place for place, producers in own.items() if has_only(settings, place, hidden[place], producers)}
