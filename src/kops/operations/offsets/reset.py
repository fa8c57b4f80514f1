"""``kops offsets reset`` and ``kops offsets seek``: from the command line to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kops.core.durations import parse_duration
from kops.core.errors import UsageProblem
from kops.core.offsets.arithmetic import ToCurrent
from kops.core.plan import Plan
from kops.core.selection import is_glob
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.choose import choose_groups, ready_group
from kops.operations.offsets.files import file_rules
from kops.operations.offsets.history import history_rules, history_time
from kops.operations.offsets.plan import by_partition, plan_group, plan_groups
from kops.operations.offsets.rules import Rule, narrowing
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


def plan_resets(services: Services, names: Sequence[str], mixes: Sequence[tuple[tuple[str, ...], Choice]], scope: Scope) -> Plan[Moves]:
    """Plan to move groups, each topic by its strategy.

    :param names: of groups, or patterns
    :param mixes: topics, or patterns, with their strategy; see ``mixes_of``
    :raises Refused: when a group named in full has members or does not exist, or a partition does not exist
    """
    if bool(names) == scope.all_groups:
        raise UsageProblem("say which groups to move: some, or all of them", hint="GROUP..., globs such as 'billing-*', or --all-groups")
    named = names if names and not scope.regex and not any(map(is_glob, names)) else None
    rules: list[Rule] = []
    histories: list[tuple[int, list[Rule]]] = []
    for topics, choice in mixes:
        _refuse_scope(choice, topics, scope)
        narrow = narrowing(topics, regex=scope.regex)
        if choice.from_file is not None:
            rules += file_rules(choice.from_file, services.now(), narrow, named)
        elif choice.to_history is not None:
            histories.append((history_time(choice.to_history, services.now()), narrow))
        else:
            strategy = strategy_of(choice, services.now())
            rules += [replace(rule, strategy=strategy) for rule in narrow] or [Rule(None, strategy)]
    milliseconds = None if scope.wait_empty is None else parse_duration(scope.wait_empty)
    chosen = choose_groups(
        services,
        names,
        [*rules, *(rule for _, narrow in histories for rule in narrow or [Rule(None, ToCurrent())])],
        regex=scope.regex,
        every=scope.all_groups,
        new_group=scope.new_group,
        wait_milliseconds=milliseconds,
    )
    idle = [name for name in chosen.groups if name not in chosen.active]
    for at, narrow in histories:
        rules += history_rules(services, idle, at, narrow)
    plan = plan_groups(services, chosen, rules, summary=f"reset group {names[0]}" if chosen.alone else "reset groups")
    file = mixes[0][1].from_file
    return plan if file is None or len(mixes) > 1 else replace(plan, summary=f"{plan.summary} to the offsets in {file}")


def _refuse_scope(choice: Choice, topics: Sequence[str], scope: Scope) -> None:
    if choice.from_file is not None and scope.all_topics:
        raise UsageProblem("--from-file names the partitions itself", hint="leave --all-topics out; --topic narrows the file")
    if choice.from_file is None and bool(topics) == scope.all_topics:
        raise UsageProblem("say what to move: some topics, or all of them", hint=SCOPE_HINT)


def plan_seek(
    services: Services, group_id: str, positions: Sequence[str], *, new_group: bool = False, wait_empty: str | None = None
) -> Plan[Moves]:
    """Plan to move partitions to exact positions: ``orders:0=1200``, ``orders:0=+1``, ``orders:0=skip:1``, ``orders=@-1h``.

    :raises Refused: as for ``plan_resets``
    :raises UsageProblem: when the log does not have an offset, or a partition is named twice
    """
    seeks = seeks_of(positions, services.now())
    group, current = ready_group(services, group_id, new_group=new_group, wait_empty=wait_empty)
    strategies = resolve_skips(services, by_partition(services, seeks), current)
    return plan_group(services, group_id, group, strategies, current, summary=f"seek group {group_id}")
