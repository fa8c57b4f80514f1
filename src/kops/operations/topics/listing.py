"""Selecting topics and partitions by name, glob or regular expression: ``orders``, ``orders-*``, ``orders-*:0,3-5``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError, NotFound
from kops.core.models import Bounds, Setting, Topic, TopicPartition
from kops.core.selection import Selection, is_glob, names_matching, parse_selection, partitions_selected, require_patterns
from kops.core.topics.settings import MIN_IN_SYNC, POLICY, RETENTION
from kops.operations.services import Services

LONG_SETTINGS = {POLICY: "cleanup_policy", RETENTION: "retention_ms", MIN_IN_SYNC: "min_insync_replicas"}
"""The columns that ``list --long`` adds, by the name of the setting."""
SORTS = {"name": "name", "size": "size_bytes", "offsets": "offsets", "partitions": "partitions"}
"""The column of each order of ``list``."""
MEASURED = ("size", "offsets")
"""Orders by what only ``--long`` looks at."""


def select(services: Services, patterns: Sequence[str], *, regex: bool = False, internal: bool = False) -> dict[str, Topic]:
    """Return the topics that names, globs or regular expressions match; all of them if there are none.

    A pattern matches internal topics only with ``internal``; a name in full matches any topic.

    :raises NotFound: for a plain name that does not exist
    """
    require_patterns(patterns, regex=regex)
    topics = services.kafka.topics
    if patterns and not regex and not any(is_glob(pattern) for pattern in patterns):
        return topics.describe(patterns)  # one request instead of two, and similar names in the error
    topics_by_name = topics.existing(names_matching(patterns, topics.names(), regex=regex, what="topic"))
    return {name: topic for name, topic in topics_by_name.items() if internal or not topic.internal or name in patterns}


def select_partitions(
    services: Services, texts: Sequence[str], *, regex: bool = False
) -> tuple[dict[str, Topic], tuple[TopicPartition, ...]]:
    """Resolve texts to topics and their partitions.

    :param texts: names or globs, each with or without partitions; with ``regex``, regular expressions for the whole name
    :raises NotFound: for a plain name or a partition that does not exist
    :raises UsageProblem: for an invalid name
    """
    if regex:
        topics = select(services, texts, regex=True)
        return topics, tuple(place for topic in topics.values() for place in topic.places)
    selections = [parse_selection(text, globs=True) for text in texts]
    topics = select(services, [selection.topic for selection in selections])
    existing = {name: topic.places for name, topic in topics.items()}
    chosen: set[TopicPartition] = set()
    for selection in selections:
        names = names_matching([selection.topic], topics)
        chosen |= set(partitions_selected([Selection(name, selection.partitions) for name in names], existing))
    return topics, tuple(sorted(chosen))


@dataclass(frozen=True)
class Listing:
    """A row per topic.

    :param problems: why a size or a count is missing
    """

    rows: list[dict[str, Any]]
    problems: Sequence[str] = ()


def list_topics(services: Services, found: Iterable[Topic], *, long: bool = False, sort: str = "name") -> Listing:
    """Return a row per topic.

    :param long: add the settings of :data:`LONG_SETTINGS`, and with requests to every broker ``size_bytes`` of the leaders and ``offsets``
        from log start to log end; compaction and transactions leave offsets without a record, so there may be fewer records
    :param sort: one of :data:`SORTS`; numbers from the largest, unknown ones last
    """
    topics = list(found)
    rows, problems = [list_row(topic) for topic in topics], list[str]()
    if long or sort in MEASURED:
        from kops.operations.topics.sizes import replica_sizes, size_of

        settings, hidden = known_settings(services, topics)
        sizes, unmeasured = replica_sizes(services, topics)
        bounds = services.kafka.offsets.bounds_or_errors(place for topic in topics for place in topic.places)
        rows = [
            row
            | _long_columns(settings.get(topic.name))
            | {"size_bytes": size_of(topic, sizes, whole=False)["size_bytes"], "offsets": _offsets(topic, bounds)}
            for row, topic in zip(rows, topics, strict=True)
        ]
        problems = [*hidden, *unmeasured, *_unknown_offsets(bounds)]
    key = SORTS[sort]
    rows.sort(key=lambda row: row["name"])
    if sort != "name":
        rows.sort(key=lambda row: -1 if row[key] is None else row[key], reverse=True)
    return Listing(rows, problems)


def known_settings(services: Services, topics: Iterable[Topic]) -> tuple[dict[str, dict[str, Setting] | None], list[str]]:
    """Return the settings of topics, without topics deleted since; None for those that may not be seen, and a sentence for each reason."""
    from kops.core.findings import names_text

    answers = services.kafka.topics.settings_or_errors(topic.name for topic in topics)
    settings = {name: None if isinstance(one, KopsError) else one for name, one in answers.items() if not isinstance(one, NotFound)}
    hidden: dict[type[KopsError], list[str]] = {}
    for name in settings:
        if isinstance(answer := answers[name], KopsError):
            hidden.setdefault(type(answer), []).append(name)
    reasons = [f"{answers[first]}{f'; nor for {names_text(others)}' if others else ''}" for first, *others in hidden.values()]
    return settings, reasons


def _unknown_offsets(bounds: Mapping[TopicPartition, Bounds | KopsError]) -> list[str]:
    """Return a sentence for each reason why offsets are not known: a dead broker may lead thousands of partitions."""
    from kops.core.findings import names_text

    places: dict[str, list[TopicPartition]] = {}
    for at, one in bounds.items():
        if isinstance(one, KopsError):
            places.setdefault(one.message, []).append(at)
    return [f"{names_text(some)}: {message}" for message, some in places.items()]


def _offsets(topic: Topic, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> int | None:
    bounds_of_partitions = [bounds[place] for place in topic.places]
    counts = [one.log_end_offset - one.log_start_offset for one in bounds_of_partitions if isinstance(one, Bounds)]
    return sum(counts) if len(counts) == len(bounds_of_partitions) else None


def list_row(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "under_replicated": sum(len(partition.in_sync_replicas) < len(partition.replicas) for partition in topic.partitions),
        "offline": sum(partition.leader is None for partition in topic.partitions),
        "internal": topic.internal,
        "topic_id": topic.topic_id,
    }


def _long_columns(settings: Mapping[str, Setting] | None) -> dict[str, Any]:
    if settings is None:
        return dict.fromkeys(LONG_SETTINGS.values())
    values = {name: settings[name].value if name in settings else None for name in LONG_SETTINGS}
    return {LONG_SETTINGS[name]: int(value) if value and value.lstrip("-").isdigit() else value for name, value in values.items()}
