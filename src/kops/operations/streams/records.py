"""Groups of the streams protocol from ``__consumer_offsets``, where the request that describes them cannot be made."""

from __future__ import annotations

from kops.core.models import TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.streams.models import Application
from kops.formats.groups.consumer_offsets import TOPIC, partition_of_group
from kops.formats.groups.streams_groups import application_of, key_prefixes
from kops.gateways.kafka.offsets import READ_COMMITTED
from kops.operations.services import Services


def read_application(services: Services, group_id: str) -> Application | None:
    """Return a group as the records of its coordinator tell it; None when there are none.

    The whole partition of ``__consumer_offsets`` is read that holds the group.

    :raises NotFound: when the cluster has no such topic that this user can see
    """
    places = services.kafka.offsets.partitions_of([TOPIC])[TOPIC]
    home = TopicPartition(TOPIC, partition_of_group(group_id, len(places)))
    found = services.kafka.offsets.bounds([home], isolation=READ_COMMITTED)[home]
    prefixes = key_prefixes(group_id)
    reader = services.kafka.records.read({home: OffsetRange(found.log_start_offset, found.log_end_offset)}, isolation=READ_COMMITTED)
    services.progress.step(f"reading {TOPIC}")
    records: list[tuple[bytes, bytes | None]] = []
    for batch in reader:
        records += [(record.key, record.value) for record in batch if record.key is not None and record.key.startswith(prefixes)]
        services.progress.advance(reader.done, reader.total, "offsets")
    return application_of(group_id, records)
