"""Reading topics back after a change."""

from __future__ import annotations

from collections.abc import Mapping

from kops.core.errors import NotFound, VerificationFailed
from kops.core.findings import counted
from kops.core.models import NewTopic, Setting, Topic
from kops.core.plan import ItemResult, Status
from kops.core.settings import same_value


def differences_of(wanted: NewTopic, found: Topic, settings: Mapping[str, Setting]) -> list[str]:
    """Describe how a topic differs from the requested one, in a few words per difference."""
    differences = []
    if wanted.partitions not in (None, len(found.partitions)):
        differences.append(f"{counted(len(found.partitions), 'partition')}, not {wanted.partitions}")
    if wanted.replication_factor not in (None, found.replication_factor):
        differences.append(f"replication factor {found.replication_factor}, not {wanted.replication_factor}")
    for name, value in wanted.settings.items():
        actual = settings[name].value if name in settings else None
        if not same_value(name, value, actual):
            differences.append(f"{name} is {actual}, not {value}")
    return differences


def created(result: ItemResult, wanted: NewTopic, found: Topic | None, settings: Mapping[str, Setting]) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    if found is None:
        return result if result.status is Status.UNKNOWN else not_as_planned(result, "it does not exist")
    if different := differences_of(wanted, found, settings):
        return not_as_planned(result, "; ".join(different))
    value = {"partitions": len(found.partitions), "replication_factor": found.replication_factor, "topic_id": found.topic_id}
    return ItemResult(result.target, Status.DONE, value=value)


def deleted(result: ItemResult, planned_id: str | None, found: Topic | None) -> ItemResult:
    """Return the result of deleting a topic after reading it back; a topic with another id was created since by another client."""
    if result.status not in (Status.DONE, Status.UNKNOWN):
        if (result.error or {}).get("code") == NotFound.slug and found is None:
            return ItemResult(result.target, Status.DONE)  # another client has deleted it before
        return result
    if found is None or found.topic_id != planned_id:
        return ItemResult(result.target, Status.DONE)
    return result if result.status is Status.UNKNOWN else not_as_planned(result, "it still exists")


def not_as_planned(result: ItemResult, what: str) -> ItemResult:
    """Return the failure of a change that the brokers accepted but that cannot be read back."""
    error = VerificationFailed(f"topic {result.target} is not as planned: {what}", hint="`kops topics describe` shows it")
    return ItemResult(result.target, Status.FAILED, error=error.as_json())
