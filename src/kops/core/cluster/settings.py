"""Settings of existing topics that risk records or writes when brokers fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kops.core.findings import Finding, Severity, command, counted, names_text
from kops.core.models import Setting, Topic
from kops.core.topics.settings import MIN_IN_SYNC, UNCLEAN


def setting_findings(topics: Iterable[Topic], settings: Mapping[str, Mapping[str, Setting]], broker_count: int) -> Iterator[Finding]:
    """Yield a note for each unsafe setting, with all topics that have it.

    :param settings: by topic and name; topics without any are passed over
    :param broker_count: one broker alone cannot keep copies, so nothing is said about them
    """
    some = [topic for topic in topics if topic.partitions]
    values = {topic.name: {name: found.value for name, found in settings.get(topic.name, {}).items()} for topic in some}
    unclean = [topic.name for topic in some if values[topic.name].get(UNCLEAN) == "true"]
    yield from _note(
        "unclean_leader_election",
        unclean,
        f"{UNCLEAN}=true on",
        "a replica that is behind may become the leader, and acknowledged records are lost",
        f"{UNCLEAN}=false",
    )
    copied = [topic for topic in some if topic.replication_factor > 1]
    alone = [topic for topic in copied if values[topic.name].get(MIN_IN_SYNC) == "1"]
    yield from _note(
        "min_isr_1",
        [topic.name for topic in alone],
        f"{MIN_IN_SYNC}=1 on",
        "acks=all is acknowledged by one replica alone, and lost with it",
        f"{MIN_IN_SYNC}=2" if all(topic.replication_factor > 2 for topic in alone) else "",  # noqa: PLR2004 - of two copies, 2 is all
    )
    yield from _note(
        "min_isr_equals_replicas",
        [topic.name for topic in copied if values[topic.name].get(MIN_IN_SYNC) == str(topic.replication_factor)],
        f"{MIN_IN_SYNC} equals the replication factor on",
        "producers with acks=all are refused as soon as one broker is down",
    )
    if broker_count > 1:
        single = [topic.name for topic in some if topic.replication_factor == 1]
        yield from _note("single_replica", single, "replication factor 1 on", "offline as soon as its broker is, lost with its disk")


def _note(check: str, topics: list[str], what: str, why: str, better: str = "") -> Iterator[Finding]:
    if topics:
        some = topics[:3]
        closer = command("topics", "alter", *some, "--config", better) if better else command("topics", "describe", *some)
        yield Finding(
            Severity.NOTE, check, names_text(topics), f"{what} {counted(len(topics), 'topic')}: {why}", (closer,), {"topics": topics}
        )
