"""Who uses a topic: groups that committed offsets on it, members that read it now, the application it belongs to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kops.core.errors import KopsError, Unreachable
from kops.core.topics.names import streams_application
from kops.operations.services import Services

SHOWN_GROUPS = 5


@dataclass(frozen=True)
class Readers:
    """Groups by topic.

    :param committed: groups with committed offsets on the topic
    :param active: groups with members that read it now
    :param unseen: groups that could not be asked, with the reason of the first
    """

    committed: dict[str, list[str]]
    active: dict[str, list[str]]
    group_ids: tuple[str, ...] = ()
    unseen: str = ""


def readers_of(services: Services, topics: Collection[str]) -> Readers:
    """Find the groups that use some topics; what may not be seen is said, not raised."""
    committed: dict[str, list[str]] = {topic: [] for topic in topics}
    active: dict[str, list[str]] = {topic: [] for topic in topics}
    groups = services.kafka.groups
    try:
        listed = groups.listed()
        offsets = groups.committed_or_errors([group.group_id for group in listed if group.type != "share"])
        members = groups.describe_or_errors([group.group_id for group in listed if group.state != "EMPTY"])
    except Unreachable:
        raise
    except KopsError as error:
        return Readers(committed, active, unseen=error.message)
    errors = [answer for answer in (*offsets.values(), *members.values()) if isinstance(answer, KopsError)]
    for group_id, found in offsets.items():
        if not isinstance(found, KopsError):
            _note(committed, group_id, (partition.topic for partition in found))
    for group_id, group in members.items():
        if not isinstance(group, KopsError):
            _note(active, group_id, (partition.topic for member in group.members for partition in member.assignment))
    return Readers(committed, active, tuple(group.group_id for group in listed), errors[0].message if errors else "")


def reader_warnings(readers: Readers, topics: Sequence[str]) -> list[str]:
    """Return what somebody who deletes the topics should know."""
    texts = []
    for topic in topics:
        application = streams_application(topic, readers.group_ids)
        if application:
            texts.append(f"{topic} is an internal topic of the Kafka Streams application {application}: deleting it destroys its state")
        if readers.active.get(topic):
            texts.append(f"{topic} is being read by {group_names(readers.active[topic])}")
        if readers.committed.get(topic):
            texts.append(f"{topic} has committed offsets of {group_names(readers.committed[topic])}: they go with it")
    if readers.unseen:
        texts.append(f"not every group could be asked whether it uses what is deleted: {readers.unseen}")
    return texts


def _note(into: dict[str, list[str]], group_id: str, topics: Iterable[str]) -> None:
    for topic in sorted(set(topics) & into.keys()):
        into[topic].append(group_id)


def group_names(group_ids: Sequence[str]) -> str:
    """Return ``groups a, b and 3 more``."""
    more = f" and {len(group_ids) - SHOWN_GROUPS} more" if len(group_ids) > SHOWN_GROUPS else ""
    return f"group{'s' if len(group_ids) > 1 else ''} {', '.join(group_ids[:SHOWN_GROUPS])}{more}"
