"""How much a computation is going to read, shown before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kops.core.cluster.models import sizes_by_replica
from kops.core.errors import KopsError
from kops.core.models import TopicPartition
from kops.core.sizes import size_text
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange


def amount_text(services: Services, inputs: Sequence[TopicRange], changelogs: Sequence[TopicRange]) -> str:
    """Return it in words: ``9,000 records (about 172.3 KiB), and 120 (3.2 KiB) of changelogs``.

    Bytes are those on the brokers' disks, compressed as they are there, without replicas; for a part of a log, its share by offsets. They
    are left out where the brokers do not report them.
    """
    sizes = _sizes(services, [*inputs, *changelogs])
    read = f"{_records(inputs):,} records{_about(inputs, sizes)}"
    written = _records(changelogs)
    return f"{read}, and {written:,}{_about(changelogs, sizes)} of changelogs" if written else read


def bytes_of(services: Services, ranges: Sequence[TopicRange]) -> int | None:
    """Return the approximate size of ranges in bytes; None where the brokers do not report it."""
    return _bytes(ranges, _sizes(services, ranges))


def _records(ranges: Sequence[TopicRange]) -> int:
    return sum(wanted.records for wanted in ranges)


def _about(ranges: Sequence[TopicRange], sizes: dict[TopicPartition, float] | None) -> str:
    """Return the bytes of some ranges in brackets, empty when they are not known.

    :param sizes: bytes per offset, by partition
    """
    total = _bytes(ranges, sizes)
    return "" if total is None else f" (about {size_text(total)})"


def _bytes(ranges: Sequence[TopicRange], sizes: dict[TopicPartition, float] | None) -> int | None:
    if sizes is None:
        return None
    places = ((TopicPartition(wanted.topic, number), end - start) for wanted in ranges for number, (start, end) in wanted.ranges.items())
    return round(sum(count * sizes.get(place, 0.0) for place, count in places))


def _sizes(services: Services, ranges: Sequence[TopicRange]) -> dict[TopicPartition, float] | None:
    places = {TopicPartition(wanted.topic, number) for wanted in ranges for number, (start, end) in wanted.ranges.items() if start < end}
    try:
        brokers = [broker.id for broker in services.kafka.cluster().brokers]
        answers = services.kafka.log_dirs.describe_or_errors(brokers, places).values() if places else []
        bounds = services.kafka.offsets.bounds(places)
    except KopsError:  # useful, but not a reason to give up
        return None
    replicas = sizes_by_replica(folder for answer in answers if not isinstance(answer, KopsError) for folder in answer)
    if not places <= replicas.keys():
        return None
    lengths = {place: ends.log_end_offset - ends.log_start_offset for place, ends in bounds.items()}
    return {place: max(replicas[place].values()) / max(1, lengths[place]) for place in places}
