"""``kops offsets reset`` and ``kops offsets seek``: from the command line to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from kops.core.durations import parse_duration
from kops.core.errors import Refused, UsageProblem
from kops.core.models import Committed, TopicPartition
from kops.core.offsets.arithmetic import ToCurrent
from kops.core.plan import Plan
from kops.core.selection import Selection, is_glob, parse_selection
from kops.operations.groups.matching import wait_until_empty
from kops.operations.offsets.files import file_offsets, file_rules
from kops.operations.offsets.history import history_rules, history_strategies, history_time
from kops.operations.offsets.many import Chosen, choose_groups, plan_groups
from kops.operations.offsets.plan import group_to_move, plan_strategies, selected
from kops.operations.offsets.rules import Rule, narrowing, rule_of
from kops.operations.offsets.skip import behind_records
from kops.operations.offsets.strategies import Choice, only_one, seeks_of, strategy_of
from kops.operations.services import Services

P = TypeVar("P")


@dataclass(frozen=True)
class Scope:
    """The groups and topics that a reset applies to.

    :param regex: names of groups and topics are regular expressions
    :param all_groups: move every group, except those that kops keeps for itself
    :param all_topics: move every partition that a group has committed
    :param new_group: groups named in full need not exist
    :param wait_empty: how long to wait for members to leave
    """

    regex: bool = False
    all_groups: bool = False
    all_topics: bool = False
    new_group: bool = False
    wait_empty: str | None = None


SCOPE_HINT = "--topic NAME, --topic NAME:0,3-5 (repeatable), or --all-topics for all that the group has committed"


def plan_reset(
    services: Services,
    group_id: str,
    choice: Choice,
    *,
    topics: Sequence[str] = (),
    all_topics: bool = False,
    new_group: bool = False,
    wait_empty: str | None = None,
) -> Plan:
    """Plan to move a group by one strategy.

    :param topics: partitions to move: ``orders``, ``orders:0,3-5``
    :param all_topics: move every partition that the group has committed
    :param new_group: the group need not exist
    :param wait_empty: how long to wait for its members to leave
    :raises Refused: when it has members, does not exist, or a partition does not exist
    """
    only_one(choice)
    selections = [parse_selection(topic) for topic in topics]
    if choice.from_file is not None:
        return _plan_file(
            services, group_id, choice.from_file, selections, all_topics=all_topics, new_group=new_group, wait_empty=wait_empty
        )
    at = None if choice.to_history is None else history_time(choice.to_history, services.now())
    strategy = ToCurrent() if at is not None else strategy_of(choice, services.now())
    if bool(topics) == all_topics:
        raise UsageProblem("say what to move: some topics, or all of them", hint=SCOPE_HINT)
    wait(services, group_id, wait_empty)
    group = group_to_move(services, group_id, new_group=new_group)
    current = committed_now(services, group_id)
    if all_topics and not current and at is None:
        raise Refused(f"group {group_id} has no committed offsets", hint="name the topics with --topic", group=group_id)
    partitions = list(current) if all_topics else [p for some in selected(services, selections) for p in some]
    if at is not None:
        known, unknown = history_strategies(services, group_id, at, partitions, every=all_topics)
        return plan_strategies(
            services, group_id, group, known, current, summary=f"reset group {group_id}", skip_gone=all_topics, unchanged=unknown
        )
    strategies = dict.fromkeys(partitions, strategy)
    return plan_strategies(services, group_id, group, strategies, current, summary=f"reset group {group_id}", skip_gone=all_topics)


def plan_resets(services: Services, names: Sequence[str], mixes: Sequence[tuple[tuple[str, ...], Choice]], scope: Scope) -> Plan:
    """Plan to move groups, each topic by its strategy.

    :param names: of groups, or patterns
    :param mixes: topics, or patterns, with their strategy; see ``mixes_of``
    :raises Refused: when a group named in full has members or does not exist, or a partition does not exist
    """
    if bool(names) == scope.all_groups:
        raise UsageProblem("say which groups to move: some, or all of them", hint="GROUP..., globs such as 'billing-*', or --all-groups")
    one = len(names) == 1 and not scope.regex and not is_glob(names[0])
    if one and len(mixes) == 1 and not any(_is_pattern(topic, scope) for topic in mixes[0][0]):
        (topics, choice), many = mixes[0], scope
        return plan_reset(
            services,
            names[0],
            choice,
            topics=topics,
            all_topics=many.all_topics,
            new_group=many.new_group,
            wait_empty=many.wait_empty,
        )
    milliseconds = parse_duration(scope.wait_empty) if scope.wait_empty is not None else 0
    chosen = choose_groups(
        services, names, regex=scope.regex, every=scope.all_groups, new_group=scope.new_group, wait_milliseconds=milliseconds
    )
    rules = [rule for topics, choice in mixes for rule in _rules(services, topics, choice, scope, chosen)]
    what = f"group {names[0]}" if one else "groups"
    return plan_groups(services, chosen, rules, summary=f"reset {what}")


def _rules(services: Services, topics: Sequence[str], choice: Choice, scope: Scope, chosen: Chosen) -> list[Rule]:
    if choice.from_file is not None:
        if scope.all_topics:
            raise UsageProblem("--from-file names the partitions itself", hint="leave --all-topics out; --topic narrows the file")
        return file_rules(choice.from_file, services.now(), narrowing(topics, regex=scope.regex))
    if bool(topics) == scope.all_topics:
        raise UsageProblem("say what to move: some topics, or all of them", hint=SCOPE_HINT)
    if choice.to_history is not None:
        narrow = narrowing(topics, regex=scope.regex)
        at = history_time(choice.to_history, services.now())
        return history_rules(services, [name for name in chosen.groups if name not in chosen.active], at, narrow)
    strategy = strategy_of(choice, services.now())
    return [rule_of(topic, strategy, regex=scope.regex) for topic in topics] or [Rule(None, strategy)]


def _is_pattern(topic: str, scope: Scope) -> bool:
    return scope.regex or is_glob(topic)


def plan_seek(
    services: Services, group_id: str, positions: Sequence[str], *, new_group: bool = False, wait_empty: str | None = None
) -> Plan:
    """Plan to move partitions to exact positions: ``orders:0=1200``, ``orders:0=+1``, ``orders:0=skip:1``, ``orders=@-1h``.

    :raises Refused: as for ``plan_reset``
    :raises UsageProblem: when the log does not have an offset, or a partition is named twice
    """
    seeks = seeks_of(positions, services.now())
    wait(services, group_id, wait_empty)
    group = group_to_move(services, group_id, new_group=new_group)
    current = committed_now(services, group_id)
    strategies = behind_records(services, _each(services, seeks), current)
    return plan_strategies(services, group_id, group, strategies, current, summary=f"seek group {group_id}")


def wait(services: Services, group_id: str, duration: str | None) -> None:
    """Wait until a group has no members, if a duration is given."""
    if duration is not None:
        wait_until_empty(services, group_id, parse_duration(duration))


def committed_now(services: Services, group_id: str) -> dict[TopicPartition, Committed]:
    """Return the group's commits with their metadata, once its pending transactional commits are completed."""
    return services.kafka.groups.committed([group_id], stable=True)[group_id]


def _plan_file(
    services: Services,
    group_id: str,
    path: Path,
    selections: Sequence[Selection],
    *,
    all_topics: bool,
    new_group: bool,
    wait_empty: str | None,
) -> Plan:
    if all_topics:
        raise UsageProblem("--from-file names the partitions itself", hint="leave --all-topics out; --topic narrows the file")
    offsets = file_offsets(path, group_id, selections, services.now())
    wait(services, group_id, wait_empty)
    group = group_to_move(services, group_id, new_group=new_group)
    strategies = _each(services, offsets)
    plan = plan_strategies(services, group_id, group, strategies, committed_now(services, group_id), summary=f"reset group {group_id}")
    return replace(plan, summary=f"{plan.summary} to the offsets in {path}")


def _each(services: Services, positions: Mapping[Selection, P]) -> dict[TopicPartition, P]:
    chosen: dict[TopicPartition, P] = {}
    for selection, partitions in zip(positions, selected(services, list(positions)), strict=True):
        for partition in partitions:
            if partition in chosen:
                raise UsageProblem(f"{partition} is named twice", hint="give one position to each partition")
            chosen[partition] = positions[selection]
    return chosen
