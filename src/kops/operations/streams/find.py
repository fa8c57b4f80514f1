"""The Kafka Streams applications of a cluster, and one of them with its group. Nothing joins a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kops.core.errors import KopsError, NotFound, OperationFailed, Refused, answer_or_error
from kops.core.models import READ_COMMITTED, Group, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.records.models import OffsetRange
from kops.core.streams.models import CLASSIC, STREAMS, Application
from kops.core.streams.topics import is_internal_name, owner_of
from kops.formats.groups.consumer_offsets import TOPIC, partition_of_group
from kops.formats.groups.streams_groups import application_of, key_prefixes
from kops.operations.groups.matching import find_group, similar, why_incomplete
from kops.operations.services import Services

ASSIGNOR = "stream"
"""The protocol of a classic group whose members are Kafka Streams instances (``StreamsPartitionAssignor``)."""
GONE = "GONE"
"""The state of an application without a group, of which only topics are left."""


def read_application(services: Services, group_id: str) -> Application | None:
    """Return a group from the records of its coordinator; None when there are none.

    Reads the whole partition of ``__consumer_offsets`` that holds the group.

    :raises NotFound: when the cluster has no such topic that this user can see
    """
    places = services.kafka.offsets.partitions_of([TOPIC])[TOPIC]
    home = TopicPartition(TOPIC, partition_of_group(group_id, len(places)))
    found = services.kafka.offsets.bounds([home], isolation=READ_COMMITTED)[home]
    prefixes = key_prefixes(group_id)
    reader = services.kafka.records.read({home: OffsetRange(found.log_start_offset, found.log_end_offset)}, isolation=READ_COMMITTED)
    services.progress.step(f"reading {TOPIC}")
    records: list[tuple[bytes, bytes | None]] = []
    for batch in reader:
        records += [(record.key, record.value) for record in batch if record.key is not None and record.key.startswith(prefixes)]
        services.progress.advance(reader.done, reader.total, "offsets")
    return application_of(group_id, records)


@dataclass(frozen=True)
class FoundApplication:
    """An application.

    :param topics: its internal topics
    :param known_by: ``protocol``, ``assignor``, ``internal topics``, or ``metadata`` that it stored with its offsets
    """

    application: Application
    topics: tuple[str, ...]
    known_by: str


def find_applications(services: Services, problems: dict[str, KopsError]) -> tuple[list[FoundApplication], list[str]]:
    """Return all applications, by name, and internal topics without an application.

    :param problems: receives the groups of which it is not known whether they are applications, and why groups may be missing
    :raises KopsError: when groups or topics cannot be listed
    """
    listed = {group.group_id: group for group in services.kafka.groups.listed(partial=True)}
    if missing := why_incomplete(services):
        problems[TOPIC] = missing
    internal = [name for name in services.kafka.topics.names() if is_internal_name(name)]
    known_by = _known_by(services, listed.values(), internal, problems)
    owned: dict[str, list[str]] = {name: [] for name in known_by}
    orphans: list[str] = []
    for topic in internal:
        owner = owner_of(topic, known_by)
        (owned[owner] if owner else orphans).append(topic)
    groups = describe_applications(services, [listed[name] for name in known_by])
    found = []
    for name in sorted(known_by):
        application = groups[name]
        exact = [topic for part in application.parts for topic in (*part.changelog_topics, *part.repartition_topics)]
        existing = set(internal)
        topics = sorted({topic for topic in exact if topic in existing}) if application.complete else owned[name]
        found.append(FoundApplication(application, tuple(topics), known_by[name]))
    return found, orphans


def _known_by(services: Services, groups: Iterable[Group], internal: Sequence[str], problems: dict[str, KopsError]) -> dict[str, str]:
    """Return, for each Kafka Streams group, why it is considered one.

    :param problems: receives why that is not known of a group
    """
    known: dict[str, str] = {}
    alive: list[str] = []
    empty: list[str] = []
    for group in groups:
        if group.type == STREAMS:
            known[group.group_id] = "protocol"
        elif group.type == CLASSIC:
            (empty if group.state == "EMPTY" else alive).append(group.group_id)
    for name, answer in services.kafka.groups.describe_or_errors(alive).items():
        if isinstance(answer, KopsError):
            problems[name] = answer
        elif answer.protocol == ASSIGNOR:
            known[name] = "assignor"
    candidates = {*known, *empty}
    owners = {owner_of(topic, candidates) for topic in internal}
    unsure = [name for name in empty if name not in owners]
    known |= {name: "internal topics" for name in empty if name in owners}
    for name, offsets in services.kafka.groups.committed_or_errors(unsure).items():
        if isinstance(offsets, KopsError):
            problems[name] = offsets
        elif any(is_streams_metadata(one.metadata) for one in offsets.values()):
            known[name] = "metadata"
    return known


def describe_applications(services: Services, groups: Sequence[Group]) -> dict[str, Application]:
    """Return applications with what their groups report; errors are stored in them, not raised.

    :raises Unreachable: when no broker answers
    """
    found: dict[str, Application] = {}
    newer = [group.group_id for group in groups if group.type == STREAMS]
    if newer:
        found |= _by_streams_protocol(services, newer)
    for group in groups:
        name = group.group_id
        found[name] = replace(found[name], state=group.state) if group.type == STREAMS else _by_classic_protocol(services, group)
    return found


def _by_classic_protocol(services: Services, group: Group) -> Application:
    bare = Application(group.group_id, CLASSIC, group.state)
    if group.state == "EMPTY":
        return bare
    answer = answer_or_error(lambda: services.kafka.streams_groups.classic(group.group_id))
    return replace(bare, unknown=(f"its members are not known: {answer.message}",)) if isinstance(answer, KopsError) else answer


def _by_streams_protocol(services: Services, group_ids: Sequence[str]) -> dict[str, Application]:
    answers: dict[str, Application | KopsError] = {}
    if services.kafka.streams_groups.can_describe:
        described = answer_or_error(lambda: services.kafka.streams_groups.streams(group_ids))
        answers = dict.fromkeys(group_ids, described) if isinstance(described, KopsError) else described
    found: dict[str, Application] = {}
    for name in group_ids:
        answer = answers.get(name) or OperationFailed("this client has no request for it")
        found[name] = answer if isinstance(answer, Application) else _from_log(services, name, answer)
    return found


def _from_log(services: Services, group_id: str, why: KopsError) -> Application:
    read = answer_or_error(lambda: read_application(services, group_id))
    if isinstance(read, Application):
        return read
    reason = (read or why).message
    return Application(group_id, STREAMS, "UNKNOWN", unknown=(f"its members and topology are not known: {reason}",))


def find_application(services: Services, name: str) -> Application:
    """Return one application; ``GONE`` when only internal topics are left of it.

    :raises NotFound: when there is neither a group nor a topic of it
    :raises Refused: when the group is not of Kafka Streams
    """
    try:
        group = find_group(services, name)
    except NotFound as missing:
        topics = [topic for topic in services.kafka.topics.names() if is_internal_name(topic)]
        ids = services.kafka.groups.ids()
        known = {name, *ids}
        if any(owner_of(topic, known) == name for topic in topics):
            return Application(name, CLASSIC, GONE)
        near = similar(name, ids)
        hint = f"did you mean {' or '.join(near)}?" if near else "`kops streams list` shows the applications"
        raise NotFound(
            f"there is no Kafka Streams application {name}: neither a group nor internal topics", hint=hint, group=name
        ) from missing
    if group.type not in (CLASSIC, STREAMS) or (group.type == CLASSIC and group.state != "EMPTY" and group.protocol not in ("", ASSIGNOR)):
        what = f"a {group.type} group" if group.type != CLASSIC else f"a consumer group ({group.protocol})"
        raise Refused(f"{name} is {what}, not a Kafka Streams application", hint="`kops groups describe` shows it", group=name)
    return describe_applications(services, [group])[name]
