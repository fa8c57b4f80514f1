"""Groups: listing, describing, waiting for one to become empty, and whether a list of them may be incomplete."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from kops.core.errors import (
    BrokerDown,
    GroupActive,
    KopsError,
    NotFound,
    Refused,
    Unreachable,
    UsageProblem,
    without_errors,
)
from kops.core.findings import counted, names_text, ranges_text
from kops.core.models import Group, Member, Partition, TopicPartition, WorkingGroup, WorkingMember, numbers_by_topic
from kops.core.own_names import may_match
from kops.core.selection import is_glob, names_matching, require_patterns
from kops.operations.services import Services

P = TypeVar("P")

WITH_OFFSETS = ("classic", "consumer", "streams")
"""The types of groups that commit offsets. Share groups have a start offset of another kind, Connect workers have none."""

WITH_KNOWN_MEMBERS = ("classic", "consumer")
"""Members of other types are known only if kafka-python can connect and the broker reports them."""

STATES = (
    "EMPTY",
    "STABLE",
    "PREPARING_REBALANCE",
    "COMPLETING_REBALANCE",
    "ASSIGNING",
    "RECONCILING",
    "NOT_READY",
    "DEAD",
    "UNKNOWN",
)
KEPT_IN = "__consumer_offsets"
POLL_SECONDS = 0.25


def list_groups(
    services: Services,
    patterns: Sequence[str] = (),
    *,
    regex: bool = False,
    states: Collection[str] = (),
    types: Collection[str] = (),
    own: bool = False,
) -> list[dict[str, Any]]:
    """Return a row per group, of every type.

    :param states: only groups in these states, by Kafka's names
    :param types: only groups of these types
    :param own: include groups that kops keeps for itself
    """
    wanted_states = {_state(state) for state in states}
    wanted_types = {name.lower() for name in types}
    require_patterns(patterns, regex=regex)
    groups = {group.group_id: group for group in services.kafka.groups.listed(partial=True) if own or may_match(group.group_id, patterns)}
    return [
        {"group": name, "type": groups[name].type, "state": groups[name].state}
        for name in names_matching(patterns, groups, regex=regex, what="group")
        if (not states or groups[name].state in wanted_states) and (not types or groups[name].type in wanted_types)
    ]


def unseen_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the listed groups of which the client library sees only the names; empty if there are none."""
    names = [f"{row['group']} ({row['type']})" for row in rows if row["state"] == "UNKNOWN"]
    return f"with these connection settings only the names are known of: {names_text(names)}" if names else ""


def describe_groups(
    services: Services, patterns: Sequence[str], problems: dict[str, KopsError], *, regex: bool = False
) -> list[dict[str, Any]]:
    """Return a row per group, with coordinator and members.

    :param problems: receives why a group is not known, by its id
    :raises NotFound: for a group that does not exist
    """
    names = matching_groups(services, patterns, regex=regex, problems=problems)
    return [_row(group) for group in without_errors(services.kafka.groups.describe_or_errors(names), problems).values()]


def matching_groups(
    services: Services, patterns: Sequence[str], *, regex: bool = False, problems: dict[str, KopsError] | None = None
) -> list[str]:
    """Return the ids of the groups that patterns match; see :func:`matching_listed`."""
    return list(matching_listed(services, patterns, regex=regex, problems=problems))


def matching_listed(
    services: Services, patterns: Sequence[str], *, regex: bool = False, problems: dict[str, KopsError] | None = None
) -> dict[str, Group]:
    """Return the groups that patterns match, as listed: without members and coordinator.

    Groups that kops keeps for itself are left out unless a pattern names them or begins with ``kops-``.

    :param problems: receives why one of several named groups is not known, and why groups may be missing that a pattern might match;
        None: the first such name is an error
    :raises NotFound: for a plain name that does not exist
    :raises AuthorizationFailed: for a plain name of a group that may not be described
    :raises BrokerDown: for a plain name of a group whose coordinator is down
    :raises TimedOut: for one whose coordinator has not taken over yet
    """
    require_patterns(patterns, regex=regex)
    listed = {group.group_id: group for group in services.kafka.groups.listed(partial=True) if may_match(group.group_id, patterns)}
    if problems is not None and any(regex or is_glob(name) for name in patterns) and (missing_some := why_incomplete(services)):
        problems[KEPT_IN] = missing_some
    while True:
        try:
            return {name: listed[name] for name in names_matching(patterns, listed, regex=regex, what="group")}
        except NotFound as missing:
            name = str(missing.details.get("group", ""))
            answer = services.kafka.groups.describe_or_errors([name])[name]
            if isinstance(answer, BrokerDown):
                answer = BrokerDown(f"group {name} is not known: {answer.message}", hint=answer.hint, group=name)
            if not isinstance(answer, KopsError):
                listed[name] = answer  # its coordinator was moving to another broker while the groups were listed
            elif isinstance(answer, NotFound):
                raise _with_similar(missing, list(listed)) from missing
            elif problems is None or len(patterns) == 1:
                raise answer from missing
            else:  # such as one that may not be described: brokers leave it out of their list
                problems[name] = answer
                patterns = [pattern for pattern in patterns if pattern != name]


def find_group(services: Services, group_id: str) -> Group:
    """Describe one group.

    :raises NotFound: when it does not exist, suggesting similar names
    """
    try:
        return services.kafka.groups.describe([group_id])[group_id]
    except NotFound as missing:
        raise _with_similar(missing, services.kafka.groups.ids()) from missing


def similar(name: str, names: Sequence[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(name, names, n=3, cutoff=0.75)


def _with_similar(missing: NotFound, names: Sequence[str]) -> NotFound:
    near = similar(str(missing.details.get("group", "")), names)
    return NotFound(missing.message, hint=f"did you mean {' or '.join(near)}?" if near else missing.hint, **missing.details)


def is_streams(group: Group) -> bool:
    """Whether it is the group of a Kafka Streams application: by its own protocol, or by its members' assignor in the classic one."""
    return group.type == "streams" or (group.state != "EMPTY" and group.protocol == "stream")


def refuse_active(group: Group, *, can_wait: bool = False) -> None:
    """Refuse to move the offsets of a group that is not empty, or whose type has no offsets.

    :param can_wait: the command has ``--wait-empty``
    :raises GroupActive: when it has members, or may have
    :raises Refused: when groups of its type have no committed offsets
    """
    if group.type not in WITH_OFFSETS:
        hint = "`kops share-groups reset` moves the start offsets of a share group" if group.type == "share" else None
        raise Refused(
            f"{group.group_id} is a {group.type} group: it has no committed offsets", hint=hint, group=group.group_id, type=group.type
        )
    if group.state == "EMPTY":
        return
    members = counted(len(group.members), "member") if group.members else "members"
    if is_streams(group):
        what = f"{group.group_id} is a running Kafka Streams application with {members} ({group.state})"
        hint = "stop all its instances first; its stores do not move with its offsets: see `kops state rebuild`"
    else:
        what = f"group {group.group_id} has {members} ({group.state})"
        hint = "stop its consumers first" + ("; --wait-empty 60s waits for them to leave" if can_wait else "")
    raise GroupActive(what, hint=hint, group=group.group_id, state=group.state, members=len(group.members))


def wait_until_empty(services: Services, group_id: str, milliseconds: int) -> None:
    """Wait until a group has no members; a group that does not exist has none.

    :raises GroupActive: when it still has members after this time
    """
    started = time.monotonic()
    seconds = milliseconds / 1000
    services.progress.step(f"waiting for group {group_id} to empty")
    while True:
        try:
            refuse_active(services.kafka.groups.describe([group_id])[group_id])
        except NotFound:
            return
        except GroupActive as active:
            passed = time.monotonic() - started
            if passed >= seconds:
                raise GroupActive(f"{active.message}, after {seconds:g} s of waiting", hint=active.hint, **active.details) from None
            services.progress.advance(int(passed), int(seconds), "s")
            time.sleep(min(POLL_SECONDS, seconds - passed))
        else:
            return


def once_empty(services: Services, milliseconds: int, plan: Callable[[], P]) -> P:
    """Plan, and plan again once the groups that are in the way have no members.

    :param milliseconds: how long to wait for their members to leave, in all
    :raises GroupActive: when one still has members then
    """
    deadline = time.monotonic() + milliseconds / 1000
    while True:
        try:
            return plan()
        except GroupActive as active:
            left = int((deadline - time.monotonic()) * 1000)
            if left <= 0 or "group" not in active.details:
                raise
            wait_until_empty(services, active.details["group"], left)


def describe_table(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return described groups as rows of a table: the number of members, the coordinator as an address."""
    return [
        {
            **group,
            "coordinator": f"{where['host']}:{where['port']} ({where['id']})" if (where := group["coordinator"]) else None,
            "members": "unknown" if group["members"] is None else len(group["members"]),
        }
        for group in groups
    ]


def member_table(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the members of described groups as rows of a table, with assignments such as ``orders:0-3 payments:3``, or tasks."""
    return [
        {**member, "group": group["group"], "assignment": _assignment(member["assignment"]) or ", ".join(member["work"]) or None}
        for group in groups
        for member in group["members"] or ()
    ]


def _assignment(partitions: Iterable[Mapping[str, Any]]) -> str | None:
    topics = numbers_by_topic(TopicPartition(one["topic"], one["partition"]) for one in partitions)
    return " ".join(f"{topic}:{ranges_text(numbers)}" for topic, numbers in topics.items()) or None


def _row(group: Group) -> dict[str, Any]:
    has_members = group.type in WITH_KNOWN_MEMBERS or isinstance(group, WorkingGroup)
    coordinator = group.coordinator
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol": group.protocol or None,
        "kafka_streams": is_streams(group),
        "coordinator": {"id": coordinator.id, "host": coordinator.host, "port": coordinator.port} if coordinator else None,
        "epoch": group.epoch if isinstance(group, WorkingGroup) else None,
        "members": [_member(member) for member in group.members] if has_members else None,
        "subtopologies": [asdict(subtopology) for subtopology in group.subtopologies] if isinstance(group, WorkingGroup) else [],
    }


def _member(member: Member) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "group_instance_id": member.group_instance_id,
        "epoch": member.epoch if isinstance(member, WorkingMember) else None,
        "assignment": [{"topic": one.topic, "partition": one.partition} for one in member.assignment],
        "work": list(member.work) if isinstance(member, WorkingMember) else [],
    }


def _state(text: str) -> str:
    words = text.strip().upper().replace("-", "_")
    plain = {state.replace("_", ""): state for state in STATES}
    found = plain.get(words.replace("_", ""))
    if found is None:
        raise UsageProblem(f"{text!r} is not a state of a group", hint=f"one of {', '.join(STATES)}")
    return found


def why_incomplete(services: Services) -> KopsError | None:
    """Return why a list of groups may be incomplete.

    None if every partition of ``__consumer_offsets`` has a leader that accepts connections, and has had one since the command began, or the
    topic may not be described.
    """
    partitions, down = _partitions(services), services.kafka.down()
    leaders = [partition.leader for partition in partitions if partition.leader is None or partition.leader in down]
    if not leaders:
        moving = services.kafka.replaced()
        said = f"groups may be missing: {'; '.join(moving.values())}, and others are taking over its groups"
        return Unreachable(said, hint="run the command again in a moment") if moving else None
    brokers = sorted({leader for leader in leaders if leader is not None})
    led = "without a leader" if not brokers else f"without a leader that answers: {'; '.join(down[broker] for broker in brokers)}"
    return Unreachable(
        f"groups are missing: {len(leaders)} of {counted(len(partitions), 'partition')} of {KEPT_IN} {led}",
        hint="`kops cluster health` shows which brokers are down",
    )


def _partitions(services: Services) -> tuple[Partition, ...]:
    try:
        topic = services.kafka.topics.existing([KEPT_IN]).get(KEPT_IN)
    except KopsError:
        return ()
    return tuple(topic.partitions) if topic else ()
