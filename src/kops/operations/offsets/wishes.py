"""Which partitions of a group are to go where: topics by name or pattern, each with its strategy.

A pattern never makes a group read what it has not read before: it matches among the topics that the group has committed, and a group that
a pattern found is moved only in such topics. What is named in full is taken as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.models import TopicPartition
from kops.core.offsets.arithmetic import Strategy, ToCurrent
from kops.core.selection import Selection, is_glob, names_matching, parse_selection, split_partitions
from kops.core.topics.names import no_topics
from kops.operations.services import Services

Places = dict[str, dict[int, Strategy]]
"""By topic and partition, where it is to go."""

Committed = Mapping[str, Collection[int]]
"""The partitions of each topic that a group has committed."""


@dataclass(frozen=True)
class Wish:
    """Where some partitions are to go.

    :param topic: a name or, with ``pattern``, a glob or regular expression; None for all topics that a group has committed
    :param partitions: None for all
    :param group: of this group only; None for every group
    """

    topic: str | None
    strategy: Strategy
    partitions: tuple[int, ...] | None = None
    pattern: bool = False
    regex: bool = False
    group: str | None = None

    def topics_of(self, committed: Iterable[str]) -> list[str]:
        """Return the topics that a pattern means, of those that a group has committed."""
        if self.topic is None:
            return sorted(committed)
        return names_matching([self.topic], committed, regex=self.regex) if self.pattern else [self.topic]

    def includes(self, partition: TopicPartition) -> bool:
        """Tell whether a partition is one of them."""
        if self.partitions is not None and partition.partition not in self.partitions:
            return False
        return partition.topic in self.topics_of([partition.topic])


def included(partition: TopicPartition, wishes: Collection[Wish]) -> bool:
    """Tell whether a partition is one of some wishes; without wishes all are."""
    return not wishes or any(wish.includes(partition) for wish in wishes)


def narrowing(texts: Iterable[str], *, regex: bool = False) -> list[Wish]:
    """Return ``--topic`` options that only narrow what is shown or moved: ``orders``, ``orders:0,3-5``, ``orders-*``."""
    return [wish_of(text, ToCurrent(), regex=regex) for text in texts]


def wish_of(text: str, strategy: Strategy, *, regex: bool = False, group: str | None = None) -> Wish:
    """Return the wish for ``orders``, ``orders:0,3-5``, ``orders-*`` or, with ``regex``, ``orders-[0-9]+:0``.

    :raises UsageProblem: when it is neither the name nor a pattern of topics
    """
    if not regex and not is_glob(text):
        selection = parse_selection(text)
        return Wish(selection.topic, strategy, selection.partitions, group=group)
    topic, partitions = split_partitions(text)
    names_matching([topic], (topic,), regex=regex)  # a broken pattern is better told before anything is read
    return Wish(topic, strategy, partitions, pattern=True, regex=regex, group=group)


def existing_partitions(services: Services, wishes: Sequence[Wish], known: Collection[str]) -> dict[str, frozenset[int]]:
    """Return the partitions of every topic that a wish names or matches.

    :param known: the topics that patterns match among
    :raises Refused: when one that is named does not exist
    """
    named = {wish.topic for wish in wishes if wish.topic is not None and not wish.pattern}
    patterns = [wish for wish in wishes if wish.pattern]
    matched = {topic for wish in patterns for topic in wish.topics_of(known)}
    found, problems = services.kafka.offsets.partitions_or_errors(named | matched)
    for topic, problem in problems.items():
        if not isinstance(problem, NotFound):
            raise problem
        if topic in named:
            raise Refused(no_topics([topic]), hint="`kops topics list` shows those that exist", topic=topic)
    existing = {topic: frozenset(partition.partition for partition in partitions) for topic, partitions in found.items()}
    for wish in wishes:
        missing = set(wish.partitions or ()) - existing[wish.topic] if wish.topic in named and not wish.pattern else set()
        if missing and wish.topic is not None:
            hint = f"{wish.topic} has the partitions 0 to {len(existing[wish.topic]) - 1}"
            raise Refused(f"there is no partition {Selection(wish.topic, (min(missing),))}", hint=hint, topic=wish.topic)
    return existing


def places_of(wishes: Sequence[Wish], committed: Committed, existing: Mapping[str, frozenset[int]], *, named: bool) -> Places:
    """Return the partitions of a group that wishes name, each with where it is to go."""
    places: Places = {}
    for wish in wishes:
        for topic in wish.topics_of(committed):
            has = committed.get(topic, ())
            if not named and not has:
                continue
            if wish.topic is None:
                partitions: Iterable[int] = has
            elif topic not in existing:
                partitions = [partition for partition in has if wish.partitions is None or partition in wish.partitions]
            else:
                partitions = existing[topic] if wish.partitions is None else existing[topic].intersection(wish.partitions)
            if topic not in places:
                places[topic] = dict.fromkeys(partitions, wish.strategy)
                continue
            there = places[topic]
            for partition in partitions:
                if there.setdefault(partition, wish.strategy) is not wish.strategy:
                    raise UsageProblem(f"{topic}:{partition} is named twice", hint="give one position to each partition")
    return {topic: dict(sorted(there.items())) for topic, there in places.items() if there}


class Sameness:
    """Lets groups that want the same share it: thousands of groups, few different columns."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[int, ...], tuple[int, ...]], dict[int, Strategy]] = {}

    def of(self, places: Places) -> Places:
        """Return equal places as the very objects that were seen first."""
        return {
            topic: self._known.setdefault((topic, tuple(there), tuple(map(id, there.values()))), there) for topic, there in places.items()
        }
