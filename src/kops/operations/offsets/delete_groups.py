"""``kops groups delete``: deletes empty groups with their committed offsets; undo restores the offsets, and with them the groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from kops.core.errors import GroupActive, KopsError, NotFound, Refused, StateMoved, VerificationFailed
from kops.core.findings import counted, names_text
from kops.core.models import Group, GroupOffsets
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.offsets.moves import Column, GroupMoves, TopicMoves
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status, not_done
from kops.core.rights import reason
from kops.core.selection import is_glob
from kops.operations.groups.matching import find_group, matching_groups, refuse_active
from kops.operations.offsets.arguments import Moves, moves_json, moves_of_json
from kops.operations.offsets.checks import current_column, moved_back, moved_since, state_moved, state_of
from kops.operations.offsets.move import plan_moves
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.services import Services

NAME = "groups.delete"
NAMED = 5


def plan_delete(services: Services, patterns: Sequence[str], *, regex: bool = False) -> Plan[Deletion]:
    """Plan to delete groups.

    :param patterns: names, globs, or regular expressions with ``regex``; groups with members are skipped if only a pattern matches them
    :raises NotFound: for a plain name that does not exist
    :raises Refused: for a group named in full that has members, or is a share group, whose position could not be restored
    """
    plain = {name for name in patterns if not regex and not is_glob(name)}
    return plan_delete_of(services, matching_groups(services, patterns, regex=regex), named=plain)


def plan_delete_of(services: Services, names: Sequence[str], *, named: Collection[str] = ()) -> Plan[Deletion]:
    """Plan to delete those of these groups that may be deleted.

    :param named: groups that must be deletable
    """
    listed = {group.group_id: group for group in services.kafka.groups.listed()}
    chosen: dict[str, Group] = {}
    items: list[Item] = []
    for name in names:
        try:
            group = find_group(services, name) if name in named else listed[name]
            _refuse(group)
        except KeyError:
            continue  # deleted since it was listed
        except Refused as refused:
            if name in named:
                raise
            items.append(Item(name, "none", reason=refused.message))
        else:
            chosen[name] = group
    prior = _prior(services, chosen)
    items += [Item(group.group, "delete", _before(chosen[group.group], group)) for group in prior]
    committed = sum(group.partitions for group in prior)
    single = prior[0].group if len(prior) == 1 else ""
    summary = f"delete group {single}" if single else f"delete {len(prior)} groups" if prior else "delete no group"
    return Plan(
        operation=NAME,
        summary=f"{summary} and {counted(committed, 'committed offset')}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(sorted(items, key=lambda item: item.target)),
        severity=Severity.SEVERE,
        confirm=single or f"{len(prior)} groups",
        guard={name: chosen[name].state for name in sorted(chosen)},
        arguments=Deletion(tuple(prior)),
        warnings=(*_warnings(chosen, prior), *_not_seen(services)),
    )


@dataclass(frozen=True, slots=True)
class Deletion(Arguments):
    """The arguments of ``groups.delete``.

    :param prior: the commits of the groups, as moves to no commit
    """

    prior: tuple[GroupMoves, ...]

    def as_json(self) -> Json:
        return {"prior": moves_json(self.prior)}

    @classmethod
    def of_json(cls, body: Json) -> Deletion:
        return cls(moves_of_json(body["prior"]))


class DeleteGroups(Mutation[Deletion]):
    """Deletes groups without members, if their commits have not changed since the plan."""

    name: ClassVar[str] = NAME
    arguments = Deletion

    def locks(self, plan: Plan[Deletion]) -> Iterable[str]:
        return (item.target for item in plan.changes)

    def check(self, services: Services, plan: Plan[Deletion]) -> None:
        """Refuse if a group was joined, has other commits than planned, or no longer exists."""
        listed = {group.group_id: group for group in services.kafka.groups.listed()}
        prior = {group.group: group for group in plan.arguments.prior}
        for name in prior:
            if name not in listed:
                raise StateMoved(f"group {name} no longer exists", hint="run the command again to plan from what is there now")
            _refuse(listed[name])
        for name, found in services.kafka.groups.read_offsets(prior, stable=True):
            problem = found if isinstance(found, KopsError) else moved_since(prior[name], found)
            if problem is None and not isinstance(found, KopsError) and _count(found) != prior[name].partitions:
                problem = state_moved(name)
            if problem is not None:
                raise problem

    def apply(self, services: Services, plan: Plan[Deletion]) -> Iterator[ItemResult]:
        """Delete the groups; the broker refuses each that was joined meanwhile.

        :raises GroupActive: when it refuses all of them, so that nothing was changed
        """
        errors = services.kafka.groups.delete([item.target for item in plan.changes])
        refusals = [error for error in errors.values() if isinstance(error, GroupActive)]
        if refusals and len(refusals) == len(errors):
            raise refusals[0]
        for item in plan.changes:
            error = errors[item.target]
            deleted = error is None or isinstance(error, NotFound)  # another client was faster
            yield ItemResult(item.target, Status.DONE) if deleted or error is None else failed(item, error)

    def verify(self, services: Services, plan: Plan[Deletion], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:  # noqa: ARG002
        left = set(services.kafka.groups.ids())
        asked = [result.target for result in results if result.status in (Status.DONE, Status.UNKNOWN)]
        committed = {
            name: found for name, found in services.kafka.groups.read_offsets(asked) if isinstance(found, KopsError) or _count(found)
        }
        return tuple(_verified(result, there=result.target in left or result.target in committed) for result in results)

    def resume(self, services: Services, plan: Plan[Deletion]) -> Plan[Deletion]:
        left = set(services.kafka.groups.ids())
        return plan_delete_of(services, [item.target for item in plan.changes if item.target in left])

    def invert(self, services: Services, plan: Plan[Deletion], results: Sequence[ItemResult]) -> Plan[Moves]:
        """Plan to commit the offsets again, which recreates the groups.

        :raises Refused: when none of the groups had offsets: a group cannot be recreated without any
        """
        untouched = not_done(results)
        prior = {group.group: group for group in plan.arguments.prior if group.partitions and group.group not in untouched}
        if not prior:
            raise Refused(
                "the groups had no committed offsets, so there is nothing to restore", hint="a consumer that joins recreates them"
            )
        prior, gone = _without_gone(services, prior)
        listed = {group.group_id: group for group in services.kafka.groups.listed()}
        groups, strayed = [], 0
        for name, found in services.kafka.groups.read_offsets(prior, stable=True):
            if isinstance(found, KopsError):
                raise found
            topics, moved_on = moved_back(prior[name], found, set())
            if name in listed and any(topic.changed for topic in topics):
                refuse_active(listed[name], can_wait=True)
            strayed += len(moved_on)
            groups.append(GroupMoves(name, state_of(listed.get(name)), topics))
        undo = plan_moves(services, groups, summary="recreate groups with their offsets", warnings=gone, within_log=False)
        lost = f"{counted(strayed, 'partition')} {'was' if strayed == 1 else 'were'} committed since: what was committed there is lost"
        return replace(undo, losses=(lost,) if strayed else ())

    def can_be_undone(self, plan: Plan[Deletion]) -> bool:
        """Whether a group had committed offsets: one without cannot be recreated."""
        return any(group.partitions for group in plan.arguments.prior)

    def messages(self, services: Services, plan: Plan[Deletion], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        deleted = {result.target for result in results if result.status is Status.DONE}
        if not any(group.partitions for group in plan.arguments.prior if group.group in deleted):
            return ()
        return ("undo recreates the groups with their offsets, as long as no consumer has joined them",)


DELETE = DeleteGroups()


def _without_gone(services: Services, prior: Mapping[str, GroupMoves]) -> tuple[dict[str, GroupMoves], list[str]]:
    """Return the commits on topics that exist, and a warning about the others.

    :raises Refused: when there are none
    """
    there = services.kafka.topics.existing({topic.topic for group in prior.values() for topic in group.topics})
    gone = sorted({topic.topic for group in prior.values() for topic in group.topics} - there.keys())
    kept = {name: replace(group, topics=tuple(topic for topic in group.topics if topic.topic in there)) for name, group in prior.items()}
    kept = {name: group for name, group in kept.items() if group.topics}
    if not kept:
        raise Refused(f"the topics of the committed offsets are gone: {names_text(gone)}")
    return kept, [f"what was committed on {names_text(gone)} is not restored: the topic is gone"] if gone else []


def _refuse(group: Group) -> None:
    """Refuse what cannot be deleted, or could not be restored.

    :raises Refused: for a share group
    :raises GroupActive: for a group with members
    """
    if group.type in ("share", "unknown"):
        raise Refused(
            f"{group.group_id} is a group of the type {group.type}: it has no committed offsets to restore it from",
            hint="`kops share-groups delete` deletes share groups" if group.type == "share" else None,
            group=group.group_id,
            type=group.type,
        )
    if group.type == "connect" and group.state != "EMPTY":
        raise GroupActive(f"{group.group_id} are Connect workers ({group.state})", hint="stop them first", group=group.group_id)
    if group.type != "connect":
        refuse_active(group)


def _prior(services: Services, groups: Iterable[str]) -> list[GroupMoves]:
    """Return the commits of groups, as moves to no commit."""
    prior = []
    for name, found in services.kafka.groups.read_offsets(sorted(groups), stable=True):
        if isinstance(found, KopsError):
            raise found
        topics = []
        for topic, offsets in sorted(found.offsets.items()):
            partitions = tuple(sorted(offsets))
            topics.append(TopicMoves(topic, partitions, current_column(found, topic, partitions), Column((None,) * len(partitions))))
        prior.append(GroupMoves(name, "EMPTY", tuple(topics)))
    return prior


def _before(group: Group, prior: GroupMoves) -> dict[str, object]:
    topics = [f"{topic.topic} ({len(topic.partitions)})" for topic in prior.topics]
    more = [f"and {len(topics) - NAMED} more"] if len(topics) > NAMED else []
    return {"type": group.type, "committed": prior.partitions, "topics": [*topics[:NAMED], *more]}


def _warnings(groups: dict[str, Group], prior: Sequence[GroupMoves]) -> list[str]:
    warnings = []
    if any(group.partitions for group in prior):
        warnings.append("consumers that join them later begin where their auto.offset.reset says: old records again, or some never")
    texts = (text for group in prior for topic in group.topics for text in topic.before.metadata.values())
    if any(group.type == "streams" for group in groups.values()) or any(is_streams_metadata(text) for text in texts):
        warnings.append("among them is a Kafka Streams application: its internal topics stay; `kops streams delete` deletes them too")
    if any(text is None for group in prior for topic in group.topics for text in topic.before.metadata.values()):
        warnings.append("metadata of some offsets cannot be read with these connection settings: undo will not restore it")
    return warnings


def _not_seen(services: Services) -> Iterator[str]:
    """Say in which topics commits may not have been seen: brokers leave out topics that may not be described, without an error."""
    undo = "undo does not restore what the groups committed in"
    hidden, problem = services.kafka.hidden_topics()
    if problem is not None:
        yield f"{undo} topics that may not be described, and whether there are such topics is not known: {reason(problem)}"
    if hidden:
        yield f"{undo} {names_text(hidden)}: not looked at (lacks DESCRIBE on topic {hidden[0]})"


def _count(found: GroupOffsets) -> int:
    return sum(map(len, found.offsets.values()))


def _verified(result: ItemResult, *, there: bool) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN) or (there and result.status is Status.UNKNOWN):
        return result
    if not there:
        return ItemResult(result.target, Status.DONE)
    error = VerificationFailed(
        f"group {result.target} is still there, or again", hint="a consumer may have joined it: `kops groups describe`"
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json())
