"""Waits until what was written is visible to ``read_committed`` consumers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from kops.core.errors import KopsError, Refused, TimedOut
from kops.core.models import READ_COMMITTED, Bounds, TopicPartition
from kops.operations.services import Services

PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.2


def own_transactions(application: str) -> str:
    """Return what the transactional ids begin with by which kops writes the changelogs of an application."""
    return f"kops-{application}-"


def bounds_of_application(
    services: Services, places: Iterable[TopicPartition], *, isolation: str, writer: str | None = None
) -> Mapping[TopicPartition, Bounds]:
    """Return the bounds of an application's own topics: with ``read_committed`` those of what it has committed, hidden records included.

    :param writer: what the transactional ids of kops begin with; those that a killed kops left open are not waited for, since the next
        one that writes ends them
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
    deadline, waits = time.monotonic() + PATIENCE_SECONDS, False
    while True:
        bounds = services.kafka.offsets.bounds(ends, isolation=READ_COMMITTED)
        behind = [partition for partition, end in ends.items() if bounds[partition].log_end_offset < end]
        if behind and writer is not None:
            behind = _held_by_others(services, behind, writer)
            bounds = services.kafka.offsets.bounds(ends, isolation=READ_COMMITTED)  # what others held until now may be visible
        if not behind:
            return bounds
        hidden = f"the transaction that is open in {behind[0]} at offset {bounds[behind[0]].log_end_offset}"
        if time.monotonic() > deadline:
            raise TimedOut(
                f"waited {PATIENCE_SECONDS:.0f} s for {hidden}: it hides what follows",
                hint="brokers abort it after its transaction.timeout.ms; run the command again then. If it never ends, `kops diagnose"
                f" {behind[0].topic}` says how it is ended",
            )
        if not waits:
            services.progress.step(f"waiting for the end of {hidden}")
            waits = True
        time.sleep(_POLL_SECONDS)


def _held_by_others(services: Services, places: Sequence[TopicPartition], writer: str) -> list[TopicPartition]:
    """Return the partitions with open transactions of others than a writer, or of whom is not known."""
    try:
        found = services.kafka.transactions.open_in(places)
    except KopsError:  # such as brokers that do not answer this
        return list(places)

    def is_own(place: TopicPartition) -> bool:
        answer = found[place]
        return not isinstance(answer, KopsError) and bool(answer) and all((one.transactional_id or "").startswith(writer) for one in answer)

    return [place for place in places if not is_own(place)]
