"""`kops groups remove-members`: members that are gone or hang give up their partitions at once (KIP-345, KIP-571)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from kops.core.errors import GroupActive, KopsError, NotFound, Refused, StateMoved, UsageProblem, VerificationFailed
from kops.core.findings import counted, names_text
from kops.core.models import Group, Member, WorkingGroup
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.operations.groups.matching import WITH_KNOWN_MEMBERS, find_group, is_streams
from kops.operations.protocol.mutation import FinalMutation, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services


@dataclass(frozen=True)
class Chosen:
    """Which members to remove: those that match one of each kind that is given.

    :param client_ids: names or globs, as are hosts and instance_ids
    :param everyone: all members
    """

    client_ids: Sequence[str] = ()
    hosts: Sequence[str] = ()
    instance_ids: Sequence[str] = ()
    member_ids: Sequence[str] = ()
    everyone: bool = False

    def __post_init__(self) -> None:
        """Check that something is chosen.

        :raises UsageProblem: for nothing, and for all members and some
        """
        some = bool(self.client_ids or self.hosts or self.instance_ids or self.member_ids)
        if some == self.everyone:
            raise UsageProblem(
                "name members by --client-id, --host, --instance-id or --member-id, or all of them by --all",
                hint="`kops groups describe` shows the members",
            )

    def includes(self, member: Member) -> bool:
        kinds = (
            (self.client_ids, member.client_id),
            (self.hosts, member.host),
            (self.instance_ids, member.group_instance_id),
            (self.member_ids, member.member_id),
        )
        return all(_matches(patterns, value) for patterns, value in kinds if patterns)


@dataclass(frozen=True)
class Removal(Arguments):
    """The members to remove from a group.

    :param members: without their assignments
    :param others: ids of the members that stay
    """

    group: str
    members: Sequence[Member]
    others: Sequence[str]

    def as_json(self) -> Json:
        members = [{key: value for key, value in asdict(one).items() if key in _IDENTITY} for one in self.members]
        return {"group": self.group, "members": members, "others": list(self.others)}

    @classmethod
    def of_json(cls, body: Json) -> Removal:
        return cls(body["group"], tuple(Member(**one) for one in body["members"]), tuple(body["others"]))


_IDENTITY = ("member_id", "client_id", "host", "group_instance_id")


def plan_remove(services: Services, group_id: str, chosen: Chosen) -> Plan[Removal]:
    """Plan to remove members from a group.

    :raises NotFound: when there is no such group, or none of its members is one of those that are chosen
    :raises Refused: when the members of the group are not known
    """
    group = find_group(services, group_id)
    _require_members(group)
    members = [one for one in group.members if chosen.includes(one)]
    if not members and not chosen.everyone:
        raise NotFound(f"no member of {group_id} matches", hint=f"`kops groups describe {group_id}` shows its members", group=group_id)
    others = [one.member_id for one in group.members if one not in members]
    warnings = ["a process that still runs joins again: stop it first"] if members else []
    if members and not others:
        warnings.append("no other member is left to take over their partitions")
    if members and is_streams(group):
        warnings.append("an instance of a Kafka Streams application whose tasks move restores their stores elsewhere")
    some = f"{counted(len(members), 'member')} of {len(group.members)}"
    return Plan(
        operation=REMOVE.name,
        summary=f"remove {some} from group {group_id}" if members else f"group {group_id} has no members",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_item(one) for one in members),
        severity=Severity.SEVERE,
        confirm=group_id,
        guard={"members": sorted(one.member_id for one in members)},
        arguments=Removal(group_id, tuple(members), tuple(others)),
        warnings=tuple(warnings),
    )


class RemoveMembers(FinalMutation[Removal]):
    """Removes members, and reads back that they are gone, and which have come back under another id."""

    name: ClassVar[str] = "groups.remove-members"
    arguments: ClassVar[type[Removal]] = Removal
    no_undo: ClassVar[str] = "a member cannot be put back into a group: it joins by itself if its process runs"

    def locks(self, plan: Plan[Removal]) -> Iterable[str]:
        return [f"members of {plan.arguments.group}"]

    def check(self, services: Services, plan: Plan[Removal]) -> None:
        """Refuse if one of the members has left: a rebalance has changed who has what."""
        there = {one.member_id for one in find_group(services, plan.arguments.group).members}
        gone = [one.client_id for one in plan.arguments.members if one.member_id not in there]
        if gone:
            raise StateMoved(f"no longer members: {names_text(gone)}", hint="run the command again to see who is there now")

    def apply(self, services: Services, plan: Plan[Removal]) -> Iterator[ItemResult]:
        group = find_group(services, plan.arguments.group)
        errors = services.kafka.groups.remove(group, plan.arguments.members)
        for item in plan.changes:
            error = errors[item.target]
            # GroupActive is UNKNOWN_MEMBER_ID: it left by itself
            yield ItemResult(item.target, Status.DONE) if error is None or isinstance(error, GroupActive) else failed(item, error)

    def verify(self, services: Services, plan: Plan[Removal], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        by_id = {one.member_id: one for one in plan.arguments.members}

        def read() -> tuple[ItemResult, ...]:
            now = services.kafka.groups.describe_or_errors([plan.arguments.group])[plan.arguments.group]
            if isinstance(now, NotFound):
                now = Group(plan.arguments.group, "DEAD", "unknown")
            known = {*by_id, *plan.arguments.others}
            new = [] if isinstance(now, KopsError) else [one for one in now.members if one.member_id not in known]
            return tuple(_gone(result, by_id[result.target], now, new) for result in results)

        return settled(read)

    def messages(self, services: Services, plan: Plan[Removal], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        back = [result.value["rejoined_as"] for result in results if result.value and result.value["rejoined_as"]]
        group = plan.arguments.group
        if back:
            return (f"{len(back)} of them joined again already: {names_text(back)}",)
        return (f"none of them has joined again so far; a running process does at its next heartbeat: `kops groups describe {group}`",)

    def resume(self, services: Services, plan: Plan[Removal]) -> Plan[Any]:
        """Plan to remove those that are still there."""
        there = {one.member_id for one in find_group(services, plan.arguments.group).members}
        left = [one.member_id for one in plan.arguments.members if one.member_id in there]
        if not left:
            return replace(plan, summary=f"none of the members is left in group {plan.arguments.group}", items=())
        return plan_remove(services, plan.arguments.group, Chosen(member_ids=left))


REMOVE = RemoveMembers()


def _require_members(group: Group) -> None:
    if group.type not in WITH_KNOWN_MEMBERS and not isinstance(group, WorkingGroup):
        raise Refused(
            f"the members of {group.group_id} are not known: this broker or client has no request for {group.type} groups",
            hint="connect with settings that kafka-python supports (PEM certificates)",
        )


def _matches(patterns: Iterable[str], value: str | None) -> bool:
    return value is not None and any(value == pattern or fnmatchcase(value, pattern) for pattern in patterns)


def _item(one: Member) -> Item:
    before: dict[str, Any] = {"client_id": one.client_id, "host": one.host, "partitions": len(one.assignment)}
    if one.group_instance_id is not None:
        before["group_instance_id"] = one.group_instance_id
    return Item(one.member_id, "remove", before)


def _gone(result: ItemResult, member: Member, now: Group | KopsError, new: Sequence[Member]) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN) or isinstance(now, KopsError):
        return result
    if any(one.member_id == member.member_id for one in now.members):
        error = VerificationFailed(f"{member.member_id} is still a member", hint="it may have sent a heartbeat since: stop its process")
        return ItemResult(result.target, Status.FAILED, error=error.as_json())
    return ItemResult(result.target, Status.DONE, value={"rejoined_as": next((one.member_id for one in new if _same(one, member)), None)})


def _same(one: Member, other: Member) -> bool:
    if other.group_instance_id is not None:
        return one.group_instance_id == other.group_instance_id
    return (one.client_id, one.host) == (other.client_id, other.host)
