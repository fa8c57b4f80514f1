"""What a reset affects beyond the application: readers of its outputs, what is lost, what every instance still has on its disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kops.core.errors import KopsError
from kops.core.models import Bounds, TopicPartition
from kops.core.plan import Item, Plan
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.topics import CHANGELOG, store_of
from kops.operations.services import Services
from kops.operations.streams.inspection import Inspection
from kops.operations.topics.impact import Readers, group_names, readers_of


def reset_impact(services: Services, look: Inspection, plan: Plan, outputs: Sequence[str], hosts: Sequence[str]) -> dict[str, Any]:
    """Return the warnings and notes of a reset, to be put into its plan.

    :param outputs: topics that the application writes, as given by the operator
    :param hosts: the instances that ran when kops first checked
    """
    if not plan.has_changes:
        return {"notes": tuple(look.notes)}
    name = look.application.application
    deleted = [item for item in plan.changes if item.action == "delete" and ":" not in item.target]
    written = tuple(dict.fromkeys((*(look.output_topics or ()), *outputs)))
    readers = readers_of(services, (*written, *(item.target for item in deleted)))
    warnings = [*_lost(name, deleted), *_unprocessed(services, look, deleted), *_trimmed(services, plan)]
    if any(_goes_back(item) for item in plan.changes):
        warnings += _emitted(look, written, readers)
    for item in deleted:
        others = sorted({*readers.committed.get(item.target, ()), *readers.active.get(item.target, ())} - {name})
        if others:
            warnings.append(f"{item.target} is read by {group_names(others)} too, which will lose it")
    if by_name := [item.target for item in deleted if item.target in look.by_name]:
        warnings.append(f"only their names suggest that these belong to it: {', '.join(by_name)}; --topology FILE decides")
    if readers.unseen:
        warnings.append(f"not every group could be asked whether it reads these topics: {readers.unseen}")
    notes = [*look.notes, delete_local_state(name, hosts)] if deleted else list(look.notes)
    return {"warnings": tuple(warnings), "notes": tuple(notes)}


def _goes_back(item: Item) -> bool:
    """Whether records may be processed again; a partition without a commit may have had one that expired."""
    return isinstance(item.after, int) and (item.before is None or item.after < item.before)


def _lost(name: str, deleted: Sequence[Any]) -> list[str]:
    """Return a sentence on the stores that are lost."""
    stores = [(store, item.before["records"]) for item in deleted if (store := store_of(item.target, name))]
    if not stores:
        return []
    shown = ", ".join(store if count is None else f"{store} ({count:,} records)" for store, count in stores)
    return [f"the state of {shown} is lost; undo does not bring it back, `kops state snapshot` can keep it"]


def _unprocessed(services: Services, look: Inspection, deleted: Sequence[Any]) -> list[str]:
    """Return how many records of repartition topics were not processed, one sentence per topic."""
    topics = {item.target for item in deleted if not item.target.endswith(CHANGELOG)}
    partitions = [TopicPartition(topic, number) for topic in sorted(topics) for number in range(look.partitions[topic])]
    counts: dict[str, int] = {}
    for partition, bounds in services.kafka.offsets.bounds_or_errors(partitions).items():
        if isinstance(bounds, Bounds):
            committed = look.committed.get(partition)
            start = max(bounds.log_start_offset, committed.offset if committed else 0)
            counts[partition.topic] = counts.get(partition.topic, 0) + max(0, bounds.log_end_offset - start)
    return [
        f"{count:,} records of {topic} were not processed: they go, and come again only for input that is processed again"
        for topic, count in counts.items()
        if count
    ]


def _trimmed(services: Services, plan: Plan) -> list[str]:
    """Return the input topics that cannot go back to their beginning, one sentence each."""
    moved = {}
    for item in plan.changes:
        topic, colon, number = item.target.rpartition(":")
        if colon and isinstance(item.after, int):
            moved[TopicPartition(topic, int(number))] = item.after
    gone: dict[str, int] = {}
    try:
        found = services.kafka.offsets.bounds_or_errors(moved)
    except KopsError:
        return []
    for partition, bounds in found.items():
        if isinstance(bounds, Bounds) and bounds.log_start_offset > 0 and moved[partition] == bounds.log_start_offset:
            gone[partition.topic] = gone.get(partition.topic, 0) + bounds.log_start_offset
    return [f"{topic} has lost its first {count:,} offsets: what came of them does not come again" for topic, count in gone.items()]


def _emitted(look: Inspection, written: Sequence[str], readers: Readers) -> list[str]:
    """Return what is sent again, and to whom."""
    if not written:
        if look.topology is not None and not look.topology.chooses_topics:
            return []
        return ["it sends its results again, and which topics it writes is not known: --topology FILE or --output-topic name them"]
    texts = []
    for topic in written:
        groups = sorted({*readers.committed.get(topic, ()), *readers.active.get(topic, ())})
        whom = f"read by {group_names(groups)}" if groups else "which no group reads that has committed anything"
        texts.append(f"results are sent again to {topic}, {whom}" + ("" if topic in look.partitions else ", and which does not exist"))
    return texts
