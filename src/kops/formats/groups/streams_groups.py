"""The records of ``__consumer_offsets`` that hold groups of the streams protocol (KIP-1071), as the group coordinator writes them.

Their keys begin with the record's type, a big-endian int16 (``CoordinatorRecordType``), then the group, and for records about a member
its id; values begin with their version, 0, then the fields of Kafka's ``group-coordinator/src/main/resources/common/message``. A
tombstone deletes what the record held. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kops.core.errors import UndecodableRecord
from kops.core.streams.models import STREAMS, Application, Part, StreamsMember, Task
from kops.formats.kafka_types import BYTE, INT, SHORT, UNSIGNED_SHORT, Reader

GROUP, MEMBER, CURRENT, TOPOLOGY = 17, 19, 22, 23
"""``STREAMS_GROUP_METADATA``, ``..._MEMBER_METADATA``, ``..._CURRENT_MEMBER_ASSIGNMENT``, ``..._TOPOLOGY``."""
_WITH_MEMBER = (MEMBER, CURRENT)
_NULL = -1


@dataclass(frozen=True, slots=True)
class StreamsKey:
    """What a record is about.

    :param kind: one of the types above
    :param member: member id; empty for records about the group
    """

    kind: int
    group: str
    member: str = ""


def key_prefixes(group: str) -> tuple[bytes, ...]:
    """Return the prefixes of the keys of a group's records, so that others can be skipped undecoded."""
    name = group.encode()
    return tuple(SHORT.pack(kind) + SHORT.pack(len(name)) + name for kind in (GROUP, MEMBER, CURRENT, TOPOLOGY))


def decode_key(data: bytes) -> StreamsKey | None:
    """Decode a key; None for records of other kinds.

    :raises UndecodableRecord: when the bytes end too early
    """
    reader = Reader(data)
    kind = reader.number(SHORT)
    if kind not in (GROUP, MEMBER, CURRENT, TOPOLOGY):
        return None
    return StreamsKey(kind, reader.text(), reader.text() if kind in _WITH_MEMBER else "")


def application_of(group: str, records: Iterable[tuple[bytes, bytes | None]]) -> Application | None:
    """Build a group from the last of its records per key; None when there is no such group.

    :param records: keys and values in the order of the log
    :raises UndecodableRecord: for a version that is not known
    """
    latest: dict[StreamsKey, bytes] = {}
    for data, value in records:
        key = decode_key(data)
        if key is None or key.group != group:
            continue
        if value is None:
            latest.pop(key, None)
        else:
            latest[key] = value
    if not any(key.kind == GROUP for key in latest):
        return None
    parts: tuple[Part, ...] = ()
    members: dict[str, StreamsMember] = {}
    for key in sorted(latest, key=lambda one: (one.kind, one.member)):
        if key.kind == TOPOLOGY:
            parts = decode_topology(latest[key])
        elif key.kind == MEMBER:
            members[key.member] = decode_member(key.member, latest[key])
        elif key.kind == CURRENT and key.member in members:
            active, standby, warmup = decode_tasks(latest[key])
            members[key.member] = replace(members[key.member], active=active, standby=standby, warmup=warmup)
    state = "UNKNOWN" if members else "EMPTY"
    return Application(group, STREAMS, state, tuple(members.values()), parts, complete=bool(parts))


def decode_topology(data: bytes) -> tuple[Part, ...]:
    """Read ``StreamsGroupTopologyValue``: the sub-topologies that the application registered."""
    reader = _begun(data)
    reader.number(INT)
    return reader.compact_array(lambda: _part(reader))


def decode_member(member_id: str, data: bytes) -> StreamsMember:
    """Read ``StreamsGroupMemberMetadataValue``."""
    reader = _begun(data)
    reader.optional_text()
    reader.optional_text()
    client_id, host = reader.compact_text(), reader.compact_text()
    reader.number(INT)
    reader.number(INT)
    process_id = reader.compact_text()
    server = None
    if reader.number(BYTE) != _NULL:
        server = f"{reader.compact_text()}:{reader.number(UNSIGNED_SHORT)}"
        reader.tags()
    return StreamsMember(member_id, client_id, host.removeprefix("/"), process_id, server)


def decode_tasks(data: bytes) -> tuple[tuple[Task, ...], tuple[Task, ...], tuple[Task, ...]]:
    """Read the active, standby and warm-up tasks of ``StreamsGroupCurrentMemberAssignmentValue``."""
    reader = _begun(data)
    reader.number(INT)
    reader.number(INT)
    reader.number(BYTE)
    return _tasks(reader), _tasks(reader), _tasks(reader)


def _begun(data: bytes) -> Reader:
    reader = Reader(data)
    if (version := reader.number(SHORT)) != 0:
        raise UndecodableRecord(f"version {version} of a streams group's record is not known", hint="a newer kops may know it")
    return reader


def _tasks(reader: Reader) -> tuple[Task, ...]:
    def some() -> tuple[Task, ...]:
        name = reader.compact_text()
        numbers = reader.compact_array(lambda: reader.number(INT))
        reader.tags()
        return tuple(Task(name, number) for number in numbers)

    return tuple(sorted(task for tasks in reader.compact_array(some) for task in tasks))


def _part(reader: Reader) -> Part:
    name = reader.compact_text()
    sources = reader.compact_array(reader.compact_text)
    patterns = reader.compact_array(reader.compact_text)
    changelogs = reader.compact_array(lambda: _topic(reader))
    sinks = reader.compact_array(reader.compact_text)
    repartitions = reader.compact_array(lambda: _topic(reader))
    reader.compact_array(lambda: _copartitioned(reader))
    reader.tags()
    return Part(name, sources, patterns, repartitions, changelogs, repartition_sinks=sinks)


def _topic(reader: Reader) -> str:
    name = reader.compact_text()
    reader.number(INT)
    reader.number(SHORT)
    reader.compact_array(lambda: _pair(reader))
    reader.tags()
    return name


def _pair(reader: Reader) -> tuple[str, str]:
    pair = reader.compact_text(), reader.compact_text()
    reader.tags()
    return pair


def _copartitioned(reader: Reader) -> None:
    for _ in range(3):
        reader.compact_array(lambda: reader.number(SHORT))
    reader.tags()
