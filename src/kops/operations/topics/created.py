"""Whether topics are as they were to be made, and what the brokers said when they are not."""

from __future__ import annotations

from collections.abc import Mapping

from kops.core.errors import KopsError, VerificationFailed
from kops.core.models import NewTopic, Setting, Topic
from kops.core.plan import ItemResult, Status
from kops.core.topics.settings import same_value


def differences_of(wanted: NewTopic, found: Topic, settings: Mapping[str, Setting]) -> list[str]:
    """Return in which a topic is not as it was to be made, a few words for each."""
    differences = []
    if wanted.partitions not in (None, len(found.partitions)):
        differences.append(f"{len(found.partitions)} partitions, not {wanted.partitions}")
    if wanted.replication_factor not in (None, found.replication_factor):
        differences.append(f"replication factor {found.replication_factor}, not {wanted.replication_factor}")
    for name, value in wanted.settings.items():
        actual = settings[name].value if name in settings else None
        if not same_value(name, value, actual):
            differences.append(f"{name} is {actual}, not {value}")
    return differences


def verified_creation(result: ItemResult, wanted: NewTopic, found: Topic | None, settings: Mapping[str, Setting]) -> ItemResult:
    """Return the result of creating a topic after looking at it."""
    if found is None:
        return result if result.status is Status.UNKNOWN else not_as_planned(result, "it does not exist")
    if different := differences_of(wanted, found, settings):
        return not_as_planned(result, "; ".join(different))
    value = {"partitions": len(found.partitions), "replication_factor": found.replication_factor, "topic_id": found.topic_id}
    return ItemResult(result.target, Status.DONE, value=value)


def not_as_planned(result: ItemResult, what: str) -> ItemResult:
    """Return the failure of a change that the brokers took, and that does not show."""
    error = VerificationFailed(f"topic {result.target} is not as planned: {what}", hint="`kops topics describe` shows it")
    return ItemResult(result.target, Status.FAILED, error=error.as_json())


def raise_refusals(answers: Mapping[str, KopsError | None]) -> None:
    """Raise the first of the brokers' refusals, naming the others."""
    errors = {name: error for name, error in answers.items() if error is not None}
    if not errors:
        return
    first = next(iter(errors.values()))
    if len(errors) > 1:
        first.message += f" (and {len(errors) - 1} more of the topics were refused)"
        first.details["refused"] = {name: error.message for name, error in errors.items()}
    raise first
