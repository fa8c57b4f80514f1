"""Which partition, and which instance, has a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kops.core.errors import NotFound, OperationFailed
from kops.core.murmur2 import partition_for
from kops.core.streams.models import Instance, Task
from kops.core.streams.subtopologies import StoreLook
from kops.operations.streams.inspection import Inspection


def key_rows(look: Inspection, key: bytes, shown: str, stores: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return for each store where a key is, as ``KafkaStreams#queryMetadataForKey`` does.

    :param key: as the store's serde writes it; for windows and sessions the record's own key
    :param shown: the key as it was given
    :param stores: only these; all when empty
    :raises NotFound: for a store that the application does not have
    :raises OperationFailed: when no store of it is known
    """
    known = {store.store: store for store in look.stores}
    for name in stores:
        if name not in known:
            hint = f"its stores: {', '.join(known)}" if known else "--topology FILE names its stores"
            raise NotFound(f"{look.application.application} has no store {name}", hint=hint, store=name)
    if not known:
        hint = "a store without a changelog shows only in what Topology.describe() prints: --topology FILE"
        raise OperationFailed(f"no store of {look.application.application} is known", hint=hint)
    return [_row(look, known[name], key, shown) for name in (stores or known)]


def _row(look: Inspection, store: StoreLook, key: bytes, shown: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "store": store.store,
        "key": shown,
        "partition": None,
        "changelog": store.changelog,
        "task": None,
        "active": None,
        "standby": [],
        "note": "",
    }
    instances = look.application.instances
    if store.is_global:
        everywhere = [_instance(instance) for instance in instances]
        return row | {
            "active": everywhere[0] if everywhere else None,
            "standby": everywhere[1:],
            "note": "global: every instance has all of it",
        }
    if store.partitions is None:
        return row | {"note": "how many partitions it has is not known"}
    partition = partition_for(key, store.partitions)
    row["partition"] = partition
    if store.several_counts:
        counts = ", ".join(map(str, store.several_counts))
        row["note"] = f"if it has {store.partitions} partitions: its sub-topology reads topics of {counts}, and --topology FILE decides"
    if not instances:
        return row | {"note": "no instance runs"}
    answers = {Task(part, partition): _holders(instances, Task(part, partition)) for part in store.candidates}
    tasks = list(answers)
    if len({(active, standby) for active, standby in answers.values()}) > 1:
        either = " or ".join(f"{_label(active)} (task {task})" for task, (active, _) in answers.items())
        return row | {"note": f"{either}: --topology FILE shows which sub-topology has the store"}
    if not tasks:
        return row | {"note": "which sub-topology has it is not known: --topology FILE shows it"}
    active, standby = answers[tasks[0]]
    row |= {"task": str(tasks[0]) if len(tasks) == 1 else None, "standby": [_instance(one) for one in standby]}
    return row | {"active": _instance(active)} if active else row | {"note": "no instance has its task: a rebalance is in progress"}


def _holders(instances: Sequence[Instance], task: Task) -> tuple[Instance | None, tuple[Instance, ...]]:
    active = next((one for one in instances if task in one.active), None)
    return active, tuple(one for one in instances if task in one.standby)


def _label(instance: Instance | None) -> str:
    return instance.label if instance else "nobody"


def _instance(instance: Instance) -> dict[str, Any]:
    return {"application_server": instance.application_server, "client_id": instance.client_id, "host": instance.members[0].host}


def key_table(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**row, "active": _text(row["active"]) if row["active"] else None, "standby": [_text(one) for one in row["standby"]] or None}
        for row in rows
    ]


def _text(instance: dict[str, Any]) -> str:
    return instance["application_server"] or f"{instance['host']} ({instance['client_id']})"
