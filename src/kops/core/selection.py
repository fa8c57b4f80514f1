"""Partitions as people write them: ``orders``, ``orders:0``, ``orders:0,3-5``; and names by glob or regular expression."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kops.core.errors import NotFound, UsageProblem
from kops.core.models import TopicPartition
from kops.core.topics.names import name_problem, topics_not_found

_PARTITIONS = re.compile(r"[0-9,-]+")
_MOST = 1_000_000
"""More partitions than any cluster has: a larger range is a typo that would only fill memory."""


@dataclass(frozen=True)
class Selection:
    """Partitions of a topic; None means all of them."""

    topic: str
    partitions: tuple[int, ...] | None = None

    def includes(self, partition: TopicPartition) -> bool:
        return partition.topic == self.topic and (self.partitions is None or partition.partition in self.partitions)

    def __str__(self) -> str:
        return self.topic if self.partitions is None else f"{self.topic}:{','.join(map(str, self.partitions))}"


def parse_selection(text: str, *, globs: bool = False) -> Selection:
    """Parse a topic with optional partitions.

    :param globs: the topic may be a glob
    :raises UsageProblem: if it is not a valid topic name with partitions
    """
    topic, colon, rest = text.partition(":")
    if not (globs and is_glob(topic)) and name_problem(topic):
        hint = "name the topics one by one, or pass --all-topics" if is_glob(topic) else "write it like orders, orders:0 or orders:0,3-5"
        raise UsageProblem(f"{topic!r} is not a valid topic name", hint=hint)
    return Selection(topic, _numbers(rest, text) if colon else None)


def split_partitions(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Split a topic, or a pattern of topics, from the partitions after its last colon; None if there are none.

    :raises UsageProblem: if the text after the colon is not a list of partitions
    """
    topic, colon, rest = text.rpartition(":")
    if not colon or not _PARTITIONS.fullmatch(rest):
        return text, None
    return topic, _numbers(rest, text)


def partitions_selected(selections: Iterable[Selection], existing: Mapping[str, Sequence[TopicPartition]]) -> tuple[TopicPartition, ...]:
    """Return the union of the selections.

    :param existing: the partitions of each existing topic
    :raises NotFound: for a topic or partition that does not exist
    """
    found: set[TopicPartition] = set()
    for selection in selections:
        if selection.topic not in existing:
            raise topics_not_found([selection.topic])
        has = set(existing[selection.topic])
        wanted = has if selection.partitions is None else {TopicPartition(selection.topic, number) for number in selection.partitions}
        if wanted - has:
            missing = min(wanted - has)
            hint = f"{selection.topic} has the partitions 0 to {len(has) - 1}"
            raise NotFound(f"there is no partition {missing}", hint=hint, topic=missing.topic, partition=missing.partition)
        found |= wanted
    return tuple(sorted(found))


def is_glob(text: str) -> bool:
    return bool(set(text) & set("*?["))


_LISTS = {
    "application": "kops streams list",
    "group": "kops groups list",
    "share group": "kops groups list --type share",
    "subject": "kops schemas list",
    "subscription": "kops client-metrics list",
    "topic": "kops topics list",
    "transaction": "kops transactions list",
    "user": "kops users list",
}
"""The command that lists what has such names."""


def names_matching(patterns: Sequence[str], names: Iterable[str], *, regex: bool = False, what: str = "name") -> list[str]:
    """Return the names that match a glob (or, with ``regex``, a regular expression on the whole name); all names if there are no patterns.

    A plain name matches only itself and must exist; a pattern may match nothing.

    :param what: what the names are, for the error message: one of ``_LISTS``, or a word that says no more
    :raises UsageProblem: if a regular expression is invalid
    :raises NotFound: if a plain name does not exist
    """
    known = sorted(names)
    if not patterns:
        return known
    matched: set[str] = set()
    for pattern in patterns:
        if regex:
            matched |= {name for name in known if _compiled(pattern).fullmatch(name)}
        elif is_glob(pattern):  # also where a name reads like the pattern: it hides none of the others
            matched |= {name for name in known if fnmatchcase(name, pattern) or name == pattern}
        elif pattern in known:
            matched.add(pattern)
        else:
            hint = f"`{_LISTS[what]}` shows what there is" if what in _LISTS else None
            raise NotFound(f"there is no {what} {pattern}", hint=hint, **{what.replace(" ", "_"): pattern})
    return [name for name in known if name in matched]


def require_patterns(patterns: Iterable[str], *, regex: bool) -> None:
    """Check patterns before anything is asked that they would choose from.

    :raises UsageProblem: if a regular expression is invalid
    """
    for pattern in patterns if regex else ():
        _compiled(pattern)


def names_owned(owns: Collection[str], names: Collection[str]) -> set[str]:
    """Return the names that declarations own, by globs and plain names; one that does not exist (yet) owns nothing.

    A name that reads like a glob owns only itself: what is owned may be deleted.
    """
    globs = [each for each in owns if each not in names and is_glob(each)]
    return {each for each in owns if each in names} | set(names_matching(globs, names) if globs else ())


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageProblem(f"{pattern!r} is not a valid regular expression: {error}", hint="without --regex it is a glob") from error


def _numbers(parts: str, text: str) -> tuple[int, ...]:
    return tuple(sorted({number for part in parts.split(",") for number in _range(part, text)}))


def _range(part: str, text: str) -> range:
    match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part, re.ASCII)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
    if last < first or last > _MOST:
        raise UsageProblem(f"{part!r} in {text!r} is not a partition or range of partitions", hint="write it like orders:0 or orders:0,3-5")
    return range(first, last + 1)
