"""Reading topics back after a change.

The controller responds as soon as a change is decided; each broker shows it once its metadata has caught up, and every request may go to
another broker. So one read that differs proves nothing, while one that agrees does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from kops.core.errors import NotFound, VerificationFailed
from kops.core.models import NewTopic, Setting, Topic
from kops.core.plan import ItemResult, Status
from kops.core.topics.settings import same_value

SETTLE_SECONDS = 10.0
POLL_SECONDS = 0.1

Results = tuple[ItemResult, ...]


def settled(read: Callable[[], Results]) -> Results:
    """Read until everything is as planned, or ``SETTLE_SECONDS`` have passed.

    :param read: reads back and returns the results; those that differ from the plan have the error ``verification_failed``
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        results = read()
        if time.monotonic() > deadline or not any((result.error or {}).get("code") == VerificationFailed.slug for result in results):
            return results
        time.sleep(POLL_SECONDS)


def differences_of(wanted: NewTopic, found: Topic, settings: Mapping[str, Setting]) -> list[str]:
    """Describe how a topic differs from the requested one, in a few words per difference."""
    differences = []
    if wanted.partitions not in (None, len(found.partitions)):
        differences.append(f"{len(found.partitions)} partition{'s' if len(found.partitions) != 1 else ''}, not {wanted.partitions}")
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
