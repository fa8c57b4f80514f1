"""``kops streams delete``: the group of an application, then its internal topics, in one plan of two parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kops.core.durations import parse_duration
from kops.core.findings import counted
from kops.core.plan import Plan
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.topology import Topology
from kops.operations.offsets.delete_groups import plan_delete_of
from kops.operations.protocol.composed import Part, Parts, compose
from kops.operations.services import Services
from kops.operations.streams.inspection import inspect_application
from kops.operations.streams.reset import deletion_warnings, left_alone, once_stopped, plan_internal, to_delete
from kops.operations.topics.impact import readers_of


def plan_delete(
    services: Services,
    name: str,
    internal_topics: Sequence[str] = (),
    topology: Topology | None = None,
    wait_empty: str | None = None,
) -> Plan[Parts]:
    """Plan to delete an application's group with its offsets, then its internal topics.

    The group comes first: if a member has joined it, the broker refuses that, and no topic is deleted.

    :param internal_topics: to be deleted; empty: all of its own
    :param topology: as printed by ``Topology.describe()``
    :param wait_empty: how long to wait for the instances to stop
    :raises GroupActive: while an instance runs
    :raises Refused: when a topic that is its own by name may be another application's
    :raises NotFound: when there is no such application
    """
    milliseconds = None if wait_empty is None else parse_duration(wait_empty)
    hosts, group = once_stopped(services, name, milliseconds)
    look = inspect_application(services, name, topology)
    names = to_delete(look, internal_topics)
    topics = plan_internal(services, names)
    kept = left_alone(look, names)
    parts = [Part("topic", replace(topics, warnings=(), items=(*topics.items, *kept)))]
    if group is not None:
        parts.insert(0, Part("group", replace(plan_delete_of(services, [name], named=[name]), warnings=())))
    plan = compose(parts, "delete", services)
    deleted = list(topics.changes)
    warnings = deletion_warnings(services, look, deleted, readers_of(services, [item.target for item in deleted])) if deleted else []
    if group is not None:
        warnings.append("started again, it begins where auto.offset.reset says: it reads old records again, or never some of them")
    undo = "undo commits the offsets and creates the topics empty: run `kops state rebuild` before it starts then" if deleted else ""
    wipe = delete_local_state(name, hosts)
    return replace(
        plan,
        summary=f"delete the application {name}: its group, and {counted(len(deleted), 'internal topic')}",
        confirm=name,
        warnings=tuple(warnings),
        notes=tuple(filter(None, (*look.notes, wipe, undo))),
    )
