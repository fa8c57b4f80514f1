"""``kops offsets reset`` and ``kops offsets seek``: from the command line to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kops.core.durations import parse_duration
from kops.core.errors import Refused, UsageProblem
from kops.core.models import TopicPartition
from kops.core.offsets.arithmetic import Stay, Strategy, ToCurrent
from kops.core.plan import Plan
from kops.core.selection import is_glob, parse_selection
from kops.operations.offsets.choose import ChosenGroups, choose_groups, ready_group
from kops.operations.offsets.files import file_offsets, file_rules
from kops.operations.offsets.history import history_rules, history_strategies, history_time
from kops.operations.offsets.plan import by_partition, plan_group, plan_groups, selected
from kops.operations.offsets.rules import Rule, narrowing, rule_of
from kops.operations.offsets.skip import resolve_skips
from kops.operations.offsets.strategies import Choice, seeks_of, strategy_of
from kops.operations.services import Services


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


def plan_resets(services: Services, names: Sequence[str], mixes: Sequence[tuple[tuple[str, ...], Choice]], scope: Scope) -> Plan:
    """Plan to move groups, each topic by its strategy.

    One group that is named in full is planned apart, by ``plan_group`` as all other verbs of offsets do. What that buys: the group is
    described, so a refusal counts its members and recognizes a running Kafka Streams application (a list of groups shows neither); open
    transactions that it would pass are warned about, for which the ends are read once more; and the plan names partitions alone.

    :param names: of groups, or patterns
    :param mixes: topics, or patterns, with their strategy; see ``mixes_of``
    :raises Refused: when a group named in full has members or does not exist, or a partition does not exist
    """
    if bool(names) == scope.all_groups:
        raise UsageProblem("say which groups to move: some, or all of them", hint="GROUP..., globs such as 'billing-*', or --all-groups")
    one = len(names) == 1 and not scope.regex and not is_glob(names[0])
    if one and len(mixes) == 1 and not any(is_glob(topic) for topic in mixes[0][0]):
        return _plan_one(services, names[0], *mixes[0], scope)
    milliseconds = parse_duration(scope.wait_empty) if scope.wait_empty is not None else 0
    chosen = choose_groups(
        services, names, regex=scope.regex, every=scope.all_groups, new_group=scope.new_group, wait_milliseconds=milliseconds
    )
    rules = [rule for topics, choice in mixes for rule in _rules(services, topics, choice, scope, chosen)]
    what = f"group {names[0]}" if one else "groups"
    return plan_groups(services, chosen, rules, summary=f"reset {what}")


def _plan_one(services: Services, group_id: str, topics: Sequence[str], choice: Choice, scope: Scope) -> Plan:
    """Plan to move a group by one strategy; topics are named in full.

    :raises Refused: when it has members, does not exist, or a partition does not exist
    """
    selections = [parse_selection(topic) for topic in topics]
    _refuse_scope(choice, topics, scope)
    summary = f"reset group {group_id}"
    if choice.from_file is not None:
        offsets = file_offsets(choice.from_file, group_id, selections, services.now())
        group, current = ready_group(services, group_id, new_group=scope.new_group, wait_empty=scope.wait_empty)
        plan = plan_group(services, group_id, group, by_partition(services, offsets), current, summary=summary)
        return replace(plan, summary=f"{plan.summary} to the offsets in {choice.from_file}")
    at = None if choice.to_history is None else history_time(choice.to_history, services.now())
    strategy = ToCurrent() if at is not None else strategy_of(choice, services.now())
    group, current = ready_group(services, group_id, new_group=scope.new_group, wait_empty=scope.wait_empty)
    if scope.all_topics and not current and at is None:
        raise Refused(f"group {group_id} has no committed offsets", hint="name the topics with --topic", group=group_id)
    partitions = list(current) if scope.all_topics else [p for some in selected(services, selections) for p in some]
    strategies: Mapping[TopicPartition, Strategy | Stay] = dict.fromkeys(partitions, strategy)
    if at is not None:
        strategies = history_strategies(services, group_id, at, partitions, every=scope.all_topics)
    return plan_group(services, group_id, group, strategies, current, summary=summary, skip_gone=scope.all_topics)


def _rules(services: Services, topics: Sequence[str], choice: Choice, scope: Scope, chosen: ChosenGroups) -> list[Rule]:
    _refuse_scope(choice, topics, scope)
    if choice.from_file is not None:
        return file_rules(choice.from_file, services.now(), narrowing(topics, regex=scope.regex))
    if choice.to_history is not None:
        narrow = narrowing(topics, regex=scope.regex)
        at = history_time(choice.to_history, services.now())
        return history_rules(services, [name for name in chosen.groups if name not in chosen.active], at, narrow)
    strategy = strategy_of(choice, services.now())
    return [rule_of(topic, strategy, regex=scope.regex) for topic in topics] or [Rule(None, strategy)]


def _refuse_scope(choice: Choice, topics: Sequence[str], scope: Scope) -> None:
    if choice.from_file is not None and scope.all_topics:
        raise UsageProblem("--from-file names the partitions itself", hint="leave --all-topics out; --topic narrows the file")
    if choice.from_file is None and bool(topics) == scope.all_topics:
        raise UsageProblem("say what to move: some topics, or all of them", hint=SCOPE_HINT)


def plan_seek(
    services: Services, group_id: str, positions: Sequence[str], *, new_group: bool = False, wait_empty: str | None = None
) -> Plan:
    """Plan to move partitions to exact positions: ``orders:0=1200``, ``orders:0=+1``, ``orders:0=skip:1``, ``orders=@-1h``.

    :raises Refused: as for ``plan_resets``
    :raises UsageProblem: when the log does not have an offset, or a partition is named twice
    """
    seeks = seeks_of(positions, services.now())
    group, current = ready_group(services, group_id, new_group=new_group, wait_empty=wait_empty)
    strategies = resolve_skips(services, by_partition(services, seeks), current)
    return plan_group(services, group_id, group, strategies, current, summary=f"seek group {group_id}")
