"""Partitions of topics by name, glob or regular expression: ``orders:0``, ``orders-*``, ``orders-*:0,3-5``."""

from __future__ import annotations

from collections.abc import Sequence

from kops.core.models import Topic, TopicPartition
from kops.core.selection import Selection, is_glob, names_matching, parse_selection, partitions_selected
from kops.operations.services import Services
from kops.operations.topics.listing import select


def select_partitions(
    services: Services, texts: Sequence[str], *, regex: bool = False
) -> tuple[dict[str, Topic], tuple[TopicPartition, ...]]:
    """Return the topics that texts name, and the partitions of them.

    :param texts: names or globs, each with or without partitions; regular expressions on the whole name with ``regex``
    :raises NotFound: for a plain name or a partition that does not exist
    :raises UsageProblem: for what is no name
    """
    if regex:
        found = select(services, texts, regex=True)
        return found, places_of_all(found)
    wanted = [_split(text) for text in texts]
    found = select(services, [pattern for pattern, _ in wanted])
    existing = {name: places_of(topic) for name, topic in found.items()}
    chosen: set[TopicPartition] = set()
    for pattern, selection in wanted:
        names = names_matching([pattern], found)
        chosen |= set(partitions_selected([Selection(name, selection.partitions) for name in names], existing))
    return found, tuple(sorted(chosen))


def places_of(topic: Topic) -> tuple[TopicPartition, ...]:
    """Return the partitions of a topic."""
    return tuple(TopicPartition(topic.name, part.partition) for part in topic.partitions)


def places_of_all(topics: dict[str, Topic]) -> tuple[TopicPartition, ...]:
    """Return the partitions of topics."""
    return tuple(place for topic in topics.values() for place in places_of(topic))


def _split(text: str) -> tuple[str, Selection]:
    """Return the name or glob, and the partitions under it."""
    pattern, colon, numbers = text.partition(":")
    if not is_glob(pattern):
        return pattern, parse_selection(text)
    return pattern, parse_selection(f"any{colon}{numbers}")
