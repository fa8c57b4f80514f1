"""Changelogs recreated: deleted, created with the settings that they had, and written whole.

For what appending cannot put right: a versioned store, whose history cannot be unwritten, a wrong number of partitions, and a changelog
that is not there. The settings are in the journal before the topic goes, what it held is staged, and what it is to hold too: so a
replacement that was killed at any point is finished from the journal, or by the same command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kops.core.plan import ItemResult, Plan, Status
from kops.operations.protocol.journal import Journal
from kops.operations.protocol.journal_actions import is_unfinished
from kops.operations.services import Services
from kops.operations.state.completeness import before_starting
from kops.operations.state.switch import Switch
from kops.operations.state.switch_topics import TopicChange, changes_of_json

APPEND, REPLACE = "append", "replace"
WAYS = (APPEND, REPLACE)


class Replace(Switch):
    """Deletes changelogs, creates them again, and writes what their stores should hold."""

    name: ClassVar[str] = "state.replace"

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that makes the changelogs of before again, with what they held; a changelog that was not there goes."""
        undo = super().invert(services, plan, results)
        return replace(undo, warnings=(*local_state(plan.arguments["application"], len(undo.arguments["topics"])),))

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        """Say what has to be done before the application starts."""
        if any(result.status not in (Status.DONE, Status.UNCHANGED) for result in results):
            return ("run the same command again, or `kops journal finish`: what is staged is written whole",)
        if not plan.arguments.get("open"):
            return local_state(plan.arguments["application"], len(plan.arguments["topics"]))
        return before_starting(plan.arguments["application"], plan.arguments["open"])


STATE_REPLACE = Replace()


def local_state(application: str, topics: int) -> tuple[str, ...]:
    """Return how local state is deleted, which no longer fits: a restore goes on from the offset that it remembers of the old topic.

    From 4.3 on a store keeps that offset itself (KIP-1035), so it is no use to delete ``.checkpoint``.
    """
    if not topics:
        return ()
    return (
        f"before {application} starts, delete its local state on every instance, standby replicas too: rm -r STATE_DIR/{application}"
        " (state.dir; /tmp/kafka-streams when not set), with a StatefulSet its PersistentVolumeClaims, or call KafkaStreams#cleanUp();"
        " deleting .checkpoint is not enough, since Kafka Streams 4.3 keeps offsets in RocksDB",
    )


@dataclass(frozen=True)
class Unfinished:
    """What an entry knows of a changelog that it deleted and did not write whole.

    :param change: the topic before, and as it was to be
    :param prior_stage: what it held; empty when it was not there
    :param prior_contents: of that, by partition
    """

    entry: str
    change: TopicChange
    prior_stage: str
    prior_contents: Mapping[str, Any]


def unfinished_change(services: Services, changelog: str) -> Unfinished | None:
    """Return what a replacement that stopped after it deleted a changelog knows of it: the newest, on this cluster."""
    cluster_id = services.kafka.cluster().cluster_id
    journal = Journal(services.directories.state / "journal")
    for entry in journal.entries(lambda _: None, mentioning=changelog):
        plan = entry.plan
        if plan.operation == Replace.name and plan.cluster_id == cluster_id and is_unfinished(entry):
            for change in changes_of_json(plan.arguments["topics"]):
                if change.after and change.name == changelog:
                    stores = plan.arguments["stores"].values()
                    store: Mapping[str, Any] = next((store for store in stores if store["changelog"] == changelog), {})
                    return Unfinished(entry.id, change, store.get("prior_stage") or "", store.get("prior_contents") or {})
    return None
