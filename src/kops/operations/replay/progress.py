"""How far a replay is: the committed offsets of groups of its own, on the cluster of the target, written with the records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kops.core.errors import AuthorizationFailed, KopsError
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay_parts import Sent


def progress_of(services: Services, name: str, partitions: Iterable[int], *, stable: bool = True) -> dict[int, Sent]:
    """Return how far the partitions of a source are; those that were not begun are left out.

    :param name: of the replay
    :param stable: wait for a transaction that is being decided, which after a crash takes up to its time-out
    """
    from kops.spark.replay_jobs import group_of
    from kops.spark.replay_parts import sent_of

    groups = {group_of(name, number): number for number in partitions}
    try:
        answers = services.kafka.groups.committed(groups, stable=stable)
    except AuthorizationFailed as refused:
        prefix = "-".join(name.split("-")[:2])
        rights = "READ and DELETE on groups, and WRITE on transactional ids"
        refused.hint = f"a replay keeps how far it is in groups of its own: it needs {rights}, that begin with {prefix}-"
        raise
    return {
        groups[group]: sent_of(committed.offset, committed.metadata or "")
        for group, offsets in answers.items()
        for committed in offsets.values()
        if committed is not None
    }


def forget_progress(services: Services, name: str, partitions: Iterable[int]) -> list[KopsError]:
    """Delete the groups; return why some are still there."""
    from kops.spark.replay_jobs import group_of

    outcomes = services.kafka.groups.delete(group_of(name, number) for number in partitions)
    return [error for error in outcomes.values() if error is not None]
