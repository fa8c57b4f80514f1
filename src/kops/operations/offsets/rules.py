"""Which partitions of a group move where: topics by name or pattern, each with its strategy.

A pattern never makes a group read what it has not read before: it matches only topics that the group has committed, and a group that only a
pattern matched is moved only in such topics. Names in full are taken literally.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.models import TopicPartition
from kops.core.offsets.arithmetic import Stay, Strategy, ToCurrent
from kops.core.selection import Selection, is_glob, names_matching, parse_selection, require_patterns, split_partitions
from kops.core.topics.names import no_topics_text
from kops.operations.services import Services

Committed = Mapping[str, Collection[int]]
"""The partitions of each topic that a group has committed."""


@dataclass(frozen=True)
class Rule:
    """Where some partitions move to.

    :param topic: a name or, with ``pattern``, a glob or regular expression; None: all topics that a group has committed
    :param partitions: None: all
    :param group: only this group; None: every group
    """

    topic: str | None
    strategy: Strategy | Stay
    partitions: tuple[int, ...] | None = None
    pattern: bool = False
    regex: bool = False
    group: str | None = None

    def topics_of(self, committed: Iterable[str]) -> list[str]:
        """Return the topics that the rule applies to, given those that a group has committed."""
        if self.topic is None:
            return sorted(committed)
        return names_matching([self.topic], committed, regex=self.regex) if self.pattern else [self.topic]

    def includes(self, partition: TopicPartition) -> bool:
        if self.partitions is not None and partition.partition not in self.partitions:
            return False
        return partition.topic in self.topics_of([partition.topic])


def included(partition: TopicPartition, rules: Collection[Rule]) -> bool:
    """Whether any rule includes a partition; without rules, every partition is included."""
    return not rules or any(rule.includes(partition) for rule in rules)


def narrowing(texts: Iterable[str], *, regex: bool = False) -> list[Rule]:
    """Parse ``--topic`` options that only narrow what is shown or moved: ``orders``, ``orders:0,3-5``, ``orders-*``."""
    return [rule_of(text, ToCurrent(), regex=regex) for text in texts]


def rule_of(text: str, strategy: Strategy, *, regex: bool = False) -> Rule:
    """Parse ``orders``, ``orders:0,3-5``, ``orders-*`` or, with ``regex``, ``orders-[0-9]+:0``.

    :raises UsageProblem: when it is neither a valid topic name nor a valid pattern
    """
    if not regex and not is_glob(text):
        selection = parse_selection(text)
        return Rule(selection.topic, strategy, selection.partitions)
    topic, partitions = split_partitions(text)
    require_patterns([topic], regex=regex)
    return Rule(topic, strategy, partitions, pattern=True, regex=regex)


def existing_partitions(services: Services, rules: Sequence[Rule], known: Collection[str]) -> dict[str, frozenset[int]]:
    """Return the partitions of every topic that a rule names or matches.

    :param known: the topics that patterns are matched against
    :raises Refused: when a topic or partition that is named does not exist
    """
    named = {rule.topic for rule in rules if rule.topic is not None and not rule.pattern}
    patterns = [rule for rule in rules if rule.pattern]
    matched = {topic for rule in patterns for topic in rule.topics_of(known)}
    found, problems = services.kafka.offsets.partitions_or_errors(named | matched)
    for topic, problem in problems.items():
        if not isinstance(problem, NotFound):
            raise problem
        if topic in named:
            raise Refused(no_topics_text([topic]), hint="`kops topics list` shows those that exist", topic=topic)
    existing = {topic: frozenset(partition.partition for partition in partitions) for topic, partitions in found.items()}
    for rule in rules:
        missing = set(rule.partitions or ()) - existing[rule.topic] if rule.topic in named and not rule.pattern else set()
        if missing and rule.topic is not None:
            hint = f"{rule.topic} has the partitions 0 to {len(existing[rule.topic]) - 1}"
            raise Refused(f"there is no partition {Selection(rule.topic, (min(missing),))}", hint=hint, topic=rule.topic)
    return existing


@dataclass(frozen=True, slots=True)
class Places:
    """Partitions of a topic that are to move, shared by groups: among thousands of groups few differ, so equal places are resolved once.

    :param rules: per partition, the number of its rule
    """

    partitions: tuple[int, ...]
    rules: tuple[int, ...]


def places_of(
    rules: Iterable[tuple[int, Rule]], committed: Committed, existing: Mapping[str, frozenset[int]], *, named: bool
) -> dict[str, Places]:
    """Return the partitions of a group that rules apply to, by topic.

    :param rules: with their numbers
    :param named: the group was named in full
    :raises UsageProblem: when two rules give a partition different strategies
    """
    places: dict[str, dict[int, int]] = {}
    strategies: dict[int, Strategy | Stay] = {}
    for number, rule in rules:
        strategies[number] = rule.strategy
        for topic in rule.topics_of(committed):
            has = committed.get(topic, ())
            if not named and not has:
                continue
            if rule.topic is None:
                partitions: Iterable[int] = has
            elif topic not in existing:
                partitions = [partition for partition in has if rule.partitions is None or partition in rule.partitions]
            else:
                partitions = existing[topic] if rule.partitions is None else existing[topic].intersection(rule.partitions)
            if topic not in places:
                places[topic] = dict.fromkeys(partitions, number)
                continue
            there = places[topic]
            for partition in partitions:
                other = strategies[there.setdefault(partition, number)]
                if other is not rule.strategy and other != rule.strategy:
                    raise UsageProblem(f"{topic}:{partition} is named twice", hint="give one position to each partition")
    return {topic: Places(*zip(*sorted(there.items()), strict=True)) for topic, there in places.items() if there}
