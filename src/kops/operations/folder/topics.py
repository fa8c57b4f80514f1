"""Topics as a file of a folder of the whole cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kops.config.yaml_files import placed_documents
from kops.core.findings import counted, names_text
from kops.core.plan import Plan
from kops.core.rights import Right, reason
from kops.core.settings import own_settings
from kops.core.topics.changes import Changes
from kops.core.topics.declaration import Remedy, parse_declaration
from kops.core.topics.names import STREAMS_SUFFIXES
from kops.operations.services import Services
from kops.operations.topics.declared import compare_declared, plan_apply, spared_topics
from kops.operations.topics.requests import plan_deletion


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the topics as documents of ``kops topics apply``, without those of the brokers and of Kafka Streams.

    :raises AuthorizationFailed: while some may not be described: those that a file lacks are deleted by ``--prune``
    """
    hidden, unknown = services.kafka.hidden_topics()
    if hidden:
        raise Right("DESCRIBE", f"topic {hidden[0]}").lacking(f"{names_text(hidden)} may not be described")
    topics = {name: topic for name, topic in services.kafka.topics.describe().items() if not topic.internal}
    left = [name for name in topics if name.endswith(STREAMS_SUFFIXES)]
    notes = [f"{counted(len(left), 'topic')} of Kafka Streams left out: applications create them"] if left else []
    if unknown is not None:
        notes.append(f"whether topics are missing that may not be described is not known: {reason(unknown)}")
    settings = services.kafka.topics.settings(topics, missing_ok=True)
    documents = [
        {"name": name, "partitions": len(topic.partitions), "replication_factor": topic.replication_factor, **_config(settings[name])}
        for name, topic in sorted(topics.items())
        if name not in left and name in settings
    ]
    return documents, tuple(notes)


def _config(settings: Any) -> dict[str, dict[str, str]]:
    own = {name: value for name, value in own_settings(settings).items() if "throttled" not in name}
    return {"config": own} if own else {}


def plan(services: Services, file: str) -> Sequence[Plan[Changes]]:
    """Plan to create, alter and grow topics as a file declares them."""
    return [plan_apply(services, [file])]


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[Changes]]:
    """Plan to delete topics that globs match and the file does not declare; those of Kafka Streams stay."""
    declaration = parse_declaration(placed_documents(Path(file), needed="topic", missing_ok=True))
    found = compare_declared(services, replace(declaration, owns=tuple(owns)), prune=True)
    doomed = [difference.topic for difference in found.with_remedy(Remedy.DELETE)]
    deletion = plan_deletion(services, services.kafka.topics.existing(doomed), nothing="no topic to delete")
    return [replace(deletion, notes=(*deletion.notes, *spared_topics(found)))]
