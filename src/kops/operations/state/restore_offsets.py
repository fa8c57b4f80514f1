"""Where a restored application goes on."""

from __future__ import annotations

from collections.abc import Mapping

from kops.core.errors import Refused
from kops.core.models import Committed, Topic, TopicPartition
from kops.operations.services import Services
from kops.operations.state.snapshot_manifest import Manifest


def restored_offsets(
    services: Services, manifest: Manifest, existing: Mapping[str, Topic]
) -> tuple[dict[TopicPartition, Committed], dict[TopicPartition, Committed]]:
    """Return what to commit, and what is committed now.

    Records in a repartition topic come from input behind the snapshot, which is processed again: they are passed over.

    :raises Refused: when the input is not here, or ends before the offset
    """
    hint = "--no-offsets restores only the stores; set the offsets with `kops offsets reset` then"
    own = {topic.name: topic for topic in manifest.repartitions}
    inputs = services.kafka.topics.existing(manifest.inputs)
    for name, count in manifest.inputs.items():
        if name not in inputs or len(inputs[name].partitions) != count:
            what = f"has {len(inputs[name].partitions)} partitions here, and had {count}" if name in inputs else "does not exist here"
            raise Refused(f"the input topic {name} {what}", hint=hint, topic=name)
    here = [partition for partition in manifest.committed if partition.topic in inputs or partition.topic in existing]
    bounds = services.kafka.offsets.bounds(here)
    same_cluster = services.kafka.cluster().cluster_id == manifest.cluster_id
    commits = {}
    for partition, found in manifest.committed.items():
        if partition.topic in own:
            end = bounds[partition].log_end_offset if partition in bounds else 0
            commits[partition] = Committed(end, found.metadata)
            continue
        if partition not in bounds:
            continue
        bound = bounds[partition]
        if not bound.log_start_offset <= found.offset <= bound.log_end_offset:
            raise Refused(
                f"{partition} has offsets {bound.log_start_offset} to {bound.log_end_offset}, and the snapshot is of offset {found.offset}",
                hint=hint,
            )
        commits[partition] = found if same_cluster else Committed(found.offset, found.metadata)
    group = manifest.application
    return commits, services.kafka.groups.committed([group])[group]
