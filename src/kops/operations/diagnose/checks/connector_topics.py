"""The topics that connectors read and write, and their dead letter topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.connect.topics import UsedTopics, elsewhere, missing_topic_findings, used_topics
from kops.core.errors import OperationFailed
from kops.core.findings import Finding
from kops.core.models import value_of
from kops.operations.diagnose.check import CONNECTOR, Check, NotAsked
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, UsedTopics]:
    incident.require_connect()
    if not incident.connectors:
        return {}
    brokers = incident.cluster.brokers
    settings = incident.services.kafka.topics.broker_settings(brokers[0].id) if brokers else {}
    if value_of(settings, "auto.create.topics.enable") == "true":
        raise NotAsked("the brokers create missing topics (auto.create.topics.enable)")
    found: dict[str, UsedTopics] = {}
    for name, connector in incident.connectors.items():
        seen = incident.services.connect.topics(name) if connector.type == "source" else ()
        used = used_topics(connector, seen)
        if (setting := elsewhere(connector.config)) is not None:
            incident.gaps.note(f"topics of connector {name}", OperationFailed(f"they are another cluster's ({setting})"))
        elif used.writes is None:
            incident.gaps.note(f"topics of connector {name}", OperationFailed("only its plugin knows where it writes, and it has not yet"))
        else:
            found[name] = used
    return found


def _find(seen: Mapping[str, UsedTopics], incident: Incident) -> Iterable[Finding]:
    brokers, existing = len(incident.cluster.brokers), incident.topic_names
    for name, used in seen.items():
        yield from missing_topic_findings(incident.connectors[name], used, existing, brokers=brokers)


CHECK = Check(
    "topics",
    CONNECTOR,
    ("connector_topic_missing", "dead_letter_topic_missing"),
    "an address of Connect; DESCRIBE_CONFIGS on the cluster",
    _look,
    _find,
)
