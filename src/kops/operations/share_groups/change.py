"""`kops share-groups reset`, `delete-offsets` and `delete`: start offsets of share groups without members (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kops.core.errors import GroupActive, KopsError, NotFound, Refused, UsageProblem, VerificationFailed, answer_or_error
from kops.core.findings import counted
from kops.core.models import Group, ShareOffset, TopicPartition
from kops.core.offsets.arithmetic import Strategy, ToEarliest, ToLatest, ToOffset, ToTime, resolve
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status, not_done
from kops.core.selection import parse_selection
from kops.core.times import parse_position
from kops.operations.offsets.landings import by_strategy
from kops.operations.offsets.tiers import fetched_from_remote
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import as_read_back, settled
from kops.operations.services import Services
from kops.operations.share_groups.look import offsets_of, processed_after, share_group
from kops.operations.topics.listing import select_partitions

RESET, FORGET, DELETE = "reset", "delete-offsets", "delete"
Starts = Mapping[TopicPartition, "int | None"]


@dataclass(frozen=True)
class ShareChange(Arguments):
    """Start offsets to set or delete.

    :param way: RESET, FORGET (whole topics) or DELETE (the group)
    :param before: None where no member had fetched
    :param after: None where it is deleted
    """

    group: str
    way: str
    before: Starts
    after: Starts

    def as_json(self) -> Json:
        return {"group": self.group, "way": self.way, "before": _json(self.before), "after": _json(self.after)}

    @classmethod
    def of_json(cls, body: Json) -> ShareChange:
        return cls(body["group"], body["way"], _of_json(body["before"]), _of_json(body["after"]))

    @property
    def moved(self) -> list[TopicPartition]:
        """Where the start offset is another one afterwards; elsewhere only what was processed after it is forgotten."""
        return [place for place, offset in self.after.items() if self.before.get(place) != offset]

    @property
    def topics(self) -> list[str]:
        return sorted({place.topic for place in self.after})


def plan_reset(services: Services, group_id: str, texts: Sequence[str], to: str) -> Plan[ShareChange]:
    """Plan to move start offsets.

    :param texts: topics with or without partitions; empty: all that the group has
    :param to: ``start``, ``end``, an offset, or a time such as ``@-1h``
    :raises GroupActive: when the group has members
    """
    position = parse_position(to, services.now())
    now = _known(services, group_id)
    places = select_partitions(services, texts)[1] if texts else tuple(sorted(now))
    if not places:
        raise NotFound(f"{group_id} has no start offsets", hint="name topics with --topic")
    simple: dict[str, Strategy] = {"start": ToEarliest(), "end": ToLatest(), "offset": ToOffset(position.value)}
    strategy = simple.get(position.kind) or ToTime(position.value, position.relative)
    bounds = services.kafka.offsets.bounds(places)
    times, warnings = by_strategy(services, dict.fromkeys(places, strategy), bounds)
    targets = {place: resolve(strategy, None, bounds[place], times.get(place)) for place in places}
    after = {place: target.offset for place, target in targets.items()}
    reasons = {place: one.reason for place, one in targets.items()}
    remote = fetched_from_remote(services, after.items, bounds)
    return _plan(services, group_id, RESET, now, after, reasons, [*warnings, *remote])


def plan_forget(services: Services, group_id: str, topics: Sequence[str]) -> Plan[ShareChange]:
    """Plan to delete the start offsets in topics.

    :raises UsageProblem: for partitions: the protocol deletes whole topics
    :raises NotFound: for a topic in which the group has none
    """
    if any(parse_selection(text).partitions is not None for text in topics):
        raise UsageProblem("start offsets are deleted by topic", hint="leave the partitions out, or reset them")
    now = _known(services, group_id)
    for topic in topics:
        if topic not in {place.topic for place in now}:
            raise NotFound(f"{group_id} has no start offsets in {topic}", hint=f"`kops share-groups lag {group_id}` shows them")
    return _plan(services, group_id, FORGET, now, {place: None for place in now if place.topic in topics}, {}, ())


def plan_delete(services: Services, group_id: str) -> Plan[ShareChange]:
    """Plan to delete a share group.

    :raises GroupActive: when it has members
    """
    now = _known(services, group_id)
    return _plan(services, group_id, DELETE, now, dict.fromkeys(now), {}, ())


class ChangeShareOffsets(Mutation[ShareChange]):
    """Sets or deletes start offsets, and reads them back."""

    name: ClassVar[str] = "share-groups.offsets"
    arguments: ClassVar[type[ShareChange]] = ShareChange

    def locks(self, plan: Plan[ShareChange]) -> Iterable[str]:
        return [plan.arguments.group]

    def check(self, services: Services, plan: Plan[ShareChange]) -> None:
        now = _known(services, plan.arguments.group, may_be_missing=plan.arguments.way == RESET)
        compare_guard(plan, _json({place: now.get(place) for place in plan.arguments.after}), "the start offsets have")

    def apply(self, services: Services, plan: Plan[ShareChange]) -> Iterator[ItemResult]:
        change, groups = plan.arguments, services.kafka.groups
        errors: Any
        if change.way == RESET:
            target = {place: offset for place, offset in change.after.items() if offset is not None}
            errors = answer_or_error(lambda: groups.move_share_offsets(change.group, target))
        elif change.way == FORGET:
            errors = answer_or_error(lambda: groups.delete_share_offsets(change.group, change.topics))
        else:
            errors = groups.delete([change.group])
        for item in plan.changes:
            error = errors if isinstance(errors, KopsError) else errors.get(_key(change.way, item.target))
            yield failed(item, error) if isinstance(error, KopsError) else ItemResult(item.target, Status.DONE)

    def verify(self, services: Services, plan: Plan[ShareChange], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        change = plan.arguments

        def read() -> tuple[ItemResult, ...]:
            if change.way == DELETE:
                there = change.group in services.kafka.groups.ids()
                return tuple(_read_back(result, "there" if there else None, None) for result in results)
            now = _starts(answer_or_error(lambda: offsets_of(services, change.group)))
            after = {str(place): offset for place, offset in change.after.items()}
            if isinstance(now, KopsError):
                return tuple(results)
            shown = {str(place): offset for place, offset in now.items()}
            return tuple(_read_back(result, shown.get(result.target), after[result.target]) for result in results)

        return settled(read)

    def can_be_undone(self, plan: Plan[ShareChange]) -> bool:
        change = plan.arguments
        return bool(change.moved) and _all_or_none(change, change.moved)

    def resume(self, services: Services, plan: Plan[ShareChange]) -> Plan[ShareChange]:
        change = plan.arguments
        now = _known(services, change.group, may_be_missing=True)
        return _plan(services, change.group, change.way, now, change.after, {}, ())

    def invert(self, services: Services, plan: Plan[ShareChange], results: Sequence[ItemResult]) -> Plan[ShareChange]:
        """Plan to set the previous start offsets, which creates the group again if need be.

        :raises Refused: where some partitions had none before: those can only be deleted by topic; where none was moved
        """
        change, untouched = plan.arguments, not_done(results)
        places = [place for place in change.moved if str(place) not in untouched and change.group not in untouched]
        if not places:
            raise Refused("no start offset was moved or deleted, so there is none to restore", hint="what was processed stays forgotten")
        if not _all_or_none(change, places):
            raise Refused("some of these partitions had no start offset before, and others had", hint="reset those that had one")
        before = {place: change.before.get(place) for place in places}
        had = {place: offset for place, offset in before.items() if offset is not None}
        now = _known(services, change.group, may_be_missing=True)
        strayed = [str(place) for place in places if now.get(place) != change.after[place]]
        undo = _plan(services, change.group, RESET if had else FORGET, now, had or before, {}, ())
        lost = f"{counted(len(strayed), 'partition')} moved since: records processed since are delivered again"
        return replace(undo, losses=(lost,) if strayed else ())


CHANGE = ChangeShareOffsets()


def _known(services: Services, group_id: str, *, may_be_missing: bool = False) -> dict[TopicPartition, int | None]:
    """Return the start offsets of a group without members.

    :param may_be_missing: an undo creates it again
    :raises BrokersTooOld: when the brokers cannot move them
    :raises GroupActive: when it has members
    """
    services.kafka.groups.require_share_groups(change=True)
    try:
        group = share_group(services, group_id)
    except NotFound:
        if may_be_missing:
            return {}
        raise
    _refuse_active(group)
    return {place: one.start for place, one in offsets_of(services, group_id).items()}


def _starts(found: Mapping[TopicPartition, ShareOffset] | KopsError) -> dict[TopicPartition, int | None] | KopsError:
    if isinstance(found, NotFound):
        return {}
    return found if isinstance(found, KopsError) else {place: one.start for place, one in found.items()}


def _refuse_active(group: Group) -> None:
    if group.state not in ("EMPTY", "DEAD"):
        raise GroupActive(
            f"share group {group.group_id} has {counted(len(group.members), 'member')} ({group.state})", hint="stop its consumers first"
        )


def _plan(  # noqa: PLR0917 - of one module
    services: Services,
    group_id: str,
    way: str,
    now: Starts,
    after: Starts,
    reasons: Mapping[TopicPartition, str],
    warnings: Sequence[str],
) -> Plan[ShareChange]:
    same = [place for place, offset in after.items() if way == RESET and now.get(place) == offset]
    again = processed_after(services, group_id, same)
    items = [
        _item(place, way, now.get(place), offset, reason=reasons.get(place, ""), processed=again.get(place))
        for place, offset in sorted(after.items())
    ]
    changed = {TopicPartition(*_split(item.target)) for item in items if item.changes}
    what = {RESET: f"reset {group_id}", FORGET: f"delete start offsets of {group_id}", DELETE: f"delete share group {group_id}"}[way]
    if way == DELETE:
        items, changed = [Item(group_id, DELETE, {"start_offsets": _json(now)})], set(after)
    risk = [] if way == RESET else ["consumers that join later begin where share.auto.offset.reset says"]
    return Plan(
        operation=CHANGE.name,
        summary=f"{what}: {counted(len(changed), 'partition')}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        severity=Severity.MODERATE if way == RESET else Severity.SEVERE,
        confirm=group_id,
        guard=_json({place: now.get(place) for place in changed}),
        arguments=ShareChange(
            group_id, way, {place: now.get(place) for place in changed}, {place: after[place] for place in sorted(changed)}
        ),
        warnings=(*warnings, *risk),
        notes=() if way == DELETE else ("what members acknowledged after the start offset is forgotten: such records are delivered again",),
    )


def _item(place: TopicPartition, way: str, before: int | None, after: int | None, *, reason: str, processed: int | None) -> Item:
    if before == after and way == RESET:
        if processed == 0:
            return Item(str(place), "none", before, after, reason)
        what = "what was processed after it" if processed is None else counted(processed, "processed record")
        return Item(str(place), "repeat", before, after, f"delivers {what} again")
    return Item(str(place), "move" if way == RESET else "delete", before, after, reason)


def _all_or_none(change: ShareChange, places: Iterable[TopicPartition]) -> bool:
    had = {change.before.get(place) is not None for place in places}
    return len(had) < 2  # noqa: PLR2004 - one of the two


def _key(way: str, target: str) -> Any:
    topic, number = _split(target) if way != DELETE else (target, 0)
    return TopicPartition(topic, number) if way == RESET else topic


def _split(target: str) -> tuple[str, int]:
    topic, _, number = target.rpartition(":")
    return topic, int(number)


def _json(starts: Starts) -> dict[str, int | None]:
    return {str(place): offset for place, offset in sorted(starts.items())}


def _of_json(body: Mapping[str, int | None]) -> dict[TopicPartition, int | None]:
    return {TopicPartition(*_split(text)): offset for text, offset in body.items()}


def _read_back(result: ItemResult, now: Any, wanted: Any) -> ItemResult:
    wrong = f"{result.target} is {'still there' if now == 'there' else now}, not {wanted}"
    return as_read_back(result, now, wanted, VerificationFailed(wrong, hint="a consumer may have joined"))
