"""The topics that connectors read and write, and their dead letter topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.connect.topics import Lack, lack_findings, used_topics
from kops.core.errors import OperationFailed
from kops.core.findings import Finding
from kops.operations.connect.topics import TopicLook
from kops.operations.diagnose.check import CONNECTOR, Check
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, tuple[Lack, ...]]:
    incident.require_connect()
    if not incident.connectors:
        return {}
    look, found = TopicLook(incident.services, incident.topic_names), {}
    for name, connector in incident.connectors.items():
        seen = incident.services.connect.topics(name) if connector.type == "source" else ()
        lacks = look.lacks(name, used_topics(connector.type, connector.config, seen))
        if lacks or name not in look.gaps:
            found[name] = lacks
    if look.problem is not None:
        raise look.problem
    for name, reason in look.gaps.items():
        incident.gaps.note(f"topics of connector {name}", OperationFailed(reason))
    return found


def _find(seen: Mapping[str, tuple[Lack, ...]], incident: Incident) -> Iterable[Finding]:
    for name, lacks in seen.items():
        yield from lack_findings(incident.connectors[name], lacks, brokers=len(incident.cluster.brokers))


CHECK = Check(
    "topics",
    CONNECTOR,
    ("connector_topic_missing", "dead_letter_topic_missing"),
    "an address of Connect; DESCRIBE_CONFIGS on the cluster, to know whether the brokers create topics",
    _look,
    _find,
)
