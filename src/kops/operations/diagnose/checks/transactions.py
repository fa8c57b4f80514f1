"""Open transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.diagnosis.transactions import transaction_findings
from kops.core.findings import Finding
from kops.core.models import TopicPartition
from kops.operations.diagnose.check import TOPIC, Check
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, tuple[TopicPartition, ...]]:
    stable = incident.transactions.stable
    return {topic: places for topic, places in incident.places.items() if any(place in stable for place in places)}


def _find(_seen: Mapping[str, tuple[TopicPartition, ...]], incident: Incident) -> Iterable[Finding]:
    return transaction_findings(incident.transactions.open, incident.now)


CHECK = Check(
    "transactions",
    TOPIC,
    ("open_transaction", "hanging_transaction"),
    "DESCRIBE on the topics; READ on them and DESCRIBE on transactional ids where a transaction is open",
    _look,
    _find,
)
