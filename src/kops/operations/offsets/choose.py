"""The groups that ``kops offsets reset`` moves, from their names and patterns."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kops.core.durations import parse_duration
from kops.core.errors import GroupActive, KopsError, NotFound, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import CommittedOffset, Group, TopicPartition
from kops.core.own_names import may_match
from kops.core.selection import is_glob, names_matching, require_patterns
from kops.operations.groups.matching import POLL_SECONDS, WITH_OFFSETS, find_group, matching_groups, refuse_active, wait_until_empty
from kops.operations.offsets.rules import Rule
from kops.operations.services import Services


@dataclass(frozen=True)
class ChosenGroups:
    """Groups to move.

    :param groups: None: a group that is to be created
    :param named: those that were named in full
    :param active: those with members, which only a pattern matched and the rules concern
    :param left_out: number of matched groups whose type has no committed offsets
    """

    groups: Mapping[str, Group | None]
    named: frozenset[str]
    active: Mapping[str, GroupActive]
    left_out: int

    @property
    def alone(self) -> bool:
        """Whether one group was named in full, and nothing else."""
        return len(self.named) == 1 and self.groups.keys() == self.named


def choose_groups(
    services: Services,
    names: Sequence[str],
    rules: Sequence[Rule],
    *,
    regex: bool = False,
    every: bool = False,
    new_group: bool = False,
    wait_milliseconds: int | None = None,
) -> ChosenGroups:
    """Resolve names and patterns to groups, and check whether they may be moved.

    :param rules: what is to move: a group with members that only a pattern matched, and that they do not concern, is not in the way
    :param every: all groups of the cluster except those that kops keeps for itself
    :param new_group: groups named in full need not exist
    :param wait_milliseconds: how long to wait for their members to leave
    :raises Refused: for a group named in full that has members, has no committed offsets, or does not exist
    """
    require_patterns(names, regex=regex)
    deadline = time.monotonic() + (wait_milliseconds or 0) / 1000
    plain = frozenset(() if regex else (name for name in names if not is_glob(name)))
    if len(names) == len(plain) == 1:  # a group is described with its members and protocol, which a list of groups does not show
        if wait_milliseconds is not None:
            wait_until_empty(services, names[0], wait_milliseconds)
        return ChosenGroups({names[0]: group_to_move(services, names[0], new_group=new_group)}, plain, {}, 0)
    while True:
        listed = {group.group_id: group for group in services.kafka.groups.listed() if may_match(group.group_id, names)}
        absent = plain - listed.keys()
        if absent and not new_group:
            try:
                matching_groups(services, [min(absent)])
            except NotFound as missing:
                raise _absent(missing) from missing
        patterns = [name for name in names if name not in absent]
        matched = sorted(listed) if every else names_matching(patterns, listed, regex=regex, what="group") if patterns else []
        found = {name: listed[name] for name in matched if listed[name].type in WITH_OFFSETS or name in plain}
        active: dict[str, GroupActive] = {}
        for name, group in found.items():
            try:
                refuse_active(group, can_wait=True)
            except GroupActive as problem:
                active[name] = problem
        left_out = len(matched) - len(found)
        for name in _not_concerned(services, active.keys() - plain, rules):
            del found[name], active[name]
        if not active or time.monotonic() >= deadline:
            break
        services.progress.step(f"waiting for {counted(len(active), 'group')} to empty")
        time.sleep(POLL_SECONDS)
    for name in sorted(plain & active.keys()):
        raise active[name]
    return ChosenGroups({**found, **dict.fromkeys(absent)}, plain, active, left_out)


def _not_concerned(services: Services, group_ids: Collection[str], rules: Sequence[Rule]) -> set[str]:
    """Return which of some groups with members have committed nothing, and read nothing, of what is to move."""
    if not group_ids:
        return set()
    groups = services.kafka.groups
    aside = set()
    described = groups.describe_or_errors(group_ids)
    for name, committed in groups.committed_or_errors(group_ids).items():
        group = described[name]
        if isinstance(committed, KopsError) or isinstance(group, KopsError) or group.state != "STABLE":
            continue
        if not group.members or not all(member.assignment for member in group.members):
            continue  # what a member reads is not known if its assignment cannot be decoded
        own = [rule for rule in rules if rule.group in (None, name)]
        if not any(rule.includes(place) for rule in own for place in {*committed, *group.assigned}):
            aside.add(name)
    return aside


def ready_group(
    services: Services, group_id: str, *, new_group: bool = False, wait_empty: str | None = None
) -> tuple[Group | None, dict[TopicPartition, CommittedOffset]]:
    """Return a group whose offsets may be moved, None if it is to be created, and its commits.

    :param wait_empty: how long to wait for its members to leave
    :raises Refused: as for ``group_to_move``
    """
    if wait_empty is not None:
        wait_until_empty(services, group_id, parse_duration(wait_empty))
    return group_to_move(services, group_id, new_group=new_group), committed_now(services, group_id)


def committed_now(services: Services, group_id: str) -> dict[TopicPartition, CommittedOffset]:
    """Return the group's commits with their metadata, once its pending transactional commits are completed."""
    return services.kafka.groups.committed([group_id], stable=True)[group_id]


def group_to_move(services: Services, group_id: str, *, new_group: bool) -> Group | None:
    """Return a group whose offsets may be moved; None if it is to be created.

    :raises Refused: when it has members, or does not exist although it must
    """
    if not group_id:
        raise UsageProblem("the name of the group is empty", hint="`kops groups list` shows the groups")
    try:
        group = find_group(services, group_id)
    except NotFound as missing:
        if new_group:
            return None
        raise _absent(missing) from missing
    refuse_active(group, can_wait=True)
    return group


def _absent(missing: NotFound) -> Refused:
    meant = f"{missing.hint} " if missing.hint and missing.hint.startswith("did you mean") else ""
    return Refused(missing.message, hint=f"{meant}--new-group creates it", **missing.details)
