"""Topics declared in YAML files: read, compared with the brokers, and changed by one plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kops.config.yaml_files import placed_documents
from kops.core.errors import ConfigError, UsageProblem
from kops.core.models import NewTopic
from kops.core.plan import Plan
from kops.core.selection import names_owned
from kops.core.topics.changes import Changes
from kops.core.topics.declaration import Declaration, Remedy, TopicDifference, compare, parse_declaration
from kops.core.topics.names import STREAMS_SUFFIXES
from kops.core.topics.warnings import grouped
from kops.operations.services import Services
from kops.operations.topics.plan import UP_TO_DATE, plan_changes
from kops.operations.topics.requests import growth_warnings, settings_known_to_brokers

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class TopicComparison:
    """Declared topics compared with those on the brokers.

    :param spared: topics that pruning leaves alone because Kafka Streams created them
    """

    declaration: Declaration
    differences: tuple[TopicDifference, ...]
    spared: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything differs from the declaration, except settings that no file mentions and that stay."""
        return any(found.remedy is not Remedy.LEAVE for found in self.differences)

    def with_remedy(self, *remedies: Remedy) -> list[TopicDifference]:
        return [found for found in self.differences if found.remedy in remedies]


def compare_files(services: Services, paths: Sequence[str], *, prune: bool = False, reset: bool = False) -> TopicComparison:
    """Compare declared topics with the actual ones.

    :param paths: files, or directories of files
    :param prune: also find topics that the files own and do not declare
    :param reset: settings that the files do not mention are to be removed
    :raises ConfigError: naming file and field
    :raises UsageProblem: for ``prune`` when the files own no names
    """
    declaration = read_declaration(paths, also_known=lambda: settings_known_to_brokers(services))
    if prune and not declaration.owns:
        raise UsageProblem("--prune needs to know which names belong to the files", hint="add a document such as owns: [shop-*]")
    return compare_declared(services, declaration, prune=prune, reset=reset)


def compare_declared(services: Services, declaration: Declaration, *, prune: bool = False, reset: bool = False) -> TopicComparison:
    """Compare topics with a declaration; see :func:`compare_files`."""
    kafka = services.kafka.topics
    names = kafka.names()
    known = set(names)
    found = kafka.existing(topic.name for topic in declaration.topics if topic.name in known)
    settings = kafka.settings(found)
    differences = [
        difference
        for topic in declaration.topics
        for difference in compare(topic, found.get(topic.name), settings.get(topic.name, {}), reset=reset)
    ]
    extra, spared = _undeclared(services, declaration, names) if prune else ([], [])
    differences += [TopicDifference(name, "", None, None, Remedy.DELETE) for name in extra]
    return TopicComparison(declaration, tuple(differences), tuple(spared))


def difference_rows(comparison: TopicComparison) -> list[dict[str, Any]]:
    return [
        {
            "topic": found.topic,
            "field": found.field or "(topic)",
            "actual": found.actual,
            "declared": found.declared,
            "action": found.remedy.value,
            "note": found.note,
        }
        for found in comparison.differences
    ]


def plan_apply(
    services: Services, paths: Sequence[str], *, prune: bool = False, reset: bool = False, allow_streams: bool = False
) -> Plan[Changes]:
    """Plan to bring topics in line with the files that declare them; see :func:`compare_files`.

    :raises Refused: when it would add partitions to a topic of Kafka Streams, unless ``allow_streams``
    """
    comparison = compare_files(services, paths, prune=prune, reset=reset)
    absent = {found.topic for found in comparison.with_remedy(Remedy.CREATE)}
    alter: dict[str, dict[str, str | None]] = {}
    for found in comparison.with_remedy(Remedy.ALTER, Remedy.RESET):
        alter.setdefault(found.topic, {})[found.field] = None if found.declared is None else str(found.declared)
    grow = {found.topic: int(found.declared or 0) for found in comparison.with_remedy(Remedy.GROW)}
    changes = Changes(
        create=tuple(
            NewTopic(topic.name, topic.partitions, topic.replication_factor, topic.settings)
            for topic in comparison.declaration.topics
            if topic.name in absent
        ),
        alter=alter,
        grow=grow,
        delete=tuple(found.topic for found in comparison.with_remedy(Remedy.DELETE)),
    )
    touched = {*absent, *alter, *grow}
    stuck = {found.topic: f"not as declared: {found.note}" for found in comparison.with_remedy(Remedy.NONE) if found.topic not in touched}
    return plan_changes(
        services,
        changes,
        unchanged={one.name: UP_TO_DATE for one in comparison.declaration.topics if one.name not in touched and one.name not in stuck},
        cannot=stuck,
        warnings=(*_cannot(comparison), *growth_warnings(services, grow, allow_streams=allow_streams)),
        notes=_left_alone(comparison),
    )


def spared_topics(comparison: TopicComparison) -> list[str]:
    return [f"{name} is not pruned: its name is that of an internal topic of Kafka Streams" for name in comparison.spared]


def _left_alone(comparison: TopicComparison) -> list[str]:
    left = [(found.topic, f"{found.field}={found.actual}") for found in comparison.with_remedy(Remedy.LEAVE)]
    texts = [f"{text} is set there and in no file: it stays without --reset-unmanaged" for text in grouped(left)]
    return [*texts, *spared_topics(comparison)]


def _cannot(comparison: TopicComparison) -> list[str]:
    return grouped(
        (found.topic, f"{found.field.replace('_', ' ')} {found.actual} stays, not {found.declared}: {found.note}")
        for found in comparison.with_remedy(Remedy.NONE)
    )


def _undeclared(services: Services, declaration: Declaration, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the topics that the files own and do not declare: those to delete, and those that Kafka Streams created."""
    declared = {topic.name for topic in declaration.topics}
    extra = sorted(names_owned(declaration.owns, names) - declared)
    internal = {name for name, topic in services.kafka.topics.existing(extra).items() if topic.internal}
    spared = [name for name in extra if name.endswith(STREAMS_SUFFIXES)]
    return [name for name in extra if name not in internal and name not in spared], spared


def read_declaration(paths: Sequence[str], *, also_known: Callable[[], set[str]] = set) -> Declaration:
    """Read files, and all YAML files below directories.

    :param also_known: see ``parse_declaration``
    :raises ConfigError: naming the file, and the field or line
    """
    files = list(dict.fromkeys(file for path in paths for file in files_at(Path(path))))
    found = [document for file in files for document in placed_documents(file)]
    if not found:
        raise ConfigError(f"{', '.join(paths)}: no topic is declared", hint="a document is like: name: orders")
    return parse_declaration(found, also_known=also_known)


def files_at(path: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """Return a file, or the files with these suffixes anywhere below a directory.

    :raises ConfigError: when a directory has none
    """
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in suffixes and file.is_file())
    if not found:
        raise ConfigError(f"{path} has no files that end in {' or '.join(suffixes)}", hint="name a file, or another directory")
    return found
