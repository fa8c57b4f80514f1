"""The records of ``__consumer_offsets`` that hold committed offsets and list members, as Kafka's group coordinators write them.

Keys and values begin with their version, a big-endian int16: ``OffsetCommitKey`` 0 and 1 (2 and above belong to other records),
and ``OffsetCommitValue`` 0 to 4, per the schemas in Kafka's ``group-coordinator/src/main/resources/common/message``. A tombstone removes
the commit: it expired, or was deleted.

A classic group has one record with all its members (``GroupMetadataKey`` 2, ``GroupMetadataValue`` 0 to 4). In the consumer and streams
protocols each member has a record of its own (``ConsumerGroupMemberMetadataKey`` 5, ``StreamsGroupMemberMetadataKey`` 19), and a
tombstone after it left. Pure.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.core.models import CommittedOffset, TopicPartition
from kops.formats.kafka_types import INT, LONG, SHORT, Reader

TOPIC = "__consumer_offsets"

_KEY_VERSIONS = (0, 1)
_VALUE_VERSIONS = range(5)
_WITH_EPOCH = 3
_FLEXIBLE = 4
_NO_EPOCH = -1

CLASSIC, CONSUMER_MEMBER, STREAMS_MEMBER = 2, 5, 19
_MEMBERS_VERSIONS = range(5)
_WITH_REBALANCE_TIMEOUT, _WITH_TIME, _WITH_INSTANCE = 1, 2, 3


@dataclass(frozen=True, slots=True)
class OffsetKey:
    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetValue:
    """What was committed, and when.

    :param time: milliseconds since the epoch, by the broker's clock
    :param topic_id: of the topic that it was committed for, as Kafka writes ids; None where the brokers did not record it
    """

    committed: CommittedOffset
    time: int
    topic_id: str | None = None


def partition_of_group(group: str, partitions: int) -> int:
    """Return the partition of ``__consumer_offsets`` that holds a group: ``Utils.abs(groupId.hashCode()) % partitions``.

    :param partitions: number of partitions of the topic
    """
    code = java_hash(group)
    # Utils.abs returns 0 for the smallest int, which has no absolute value in 32 bits.
    return (0 if code == -(2**31) else abs(code)) % partitions


def java_hash(text: str) -> int:
    """Return ``String.hashCode()``: over UTF-16 code units, as a signed 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (code * 31 + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def key_prefixes(group: str) -> tuple[bytes, ...]:
    """Return the prefixes of the keys of a group's commits and members, so that other records can be skipped undecoded."""
    name = group.encode()
    kinds = (*_KEY_VERSIONS, CLASSIC, CONSUMER_MEMBER, STREAMS_MEMBER)
    return tuple(SHORT.pack(kind) + SHORT.pack(len(name)) + name for kind in kinds)


def decode_key(data: bytes) -> OffsetKey | None:
    """Decode the key of a commit; None for other records.

    :raises UndecodableRecord: when the bytes end too early
    """
    reader = Reader(data)
    if reader.number(SHORT) not in _KEY_VERSIONS:
        return None
    group, topic, partition = reader.text(), reader.text(), reader.number(INT)
    return OffsetKey(group, TopicPartition(topic, partition))


def decode_value(data: bytes) -> OffsetValue:
    """Decode the value of a commit.

    :raises UndecodableRecord: when the bytes end too early, or their version is not known
    """
    reader = Reader(data)
    version = reader.number(SHORT)
    if version not in _VALUE_VERSIONS:
        raise UndecodableRecord(f"version {version} of a committed offset is not known", hint="a newer kops may know it")
    offset = reader.number(LONG)
    epoch = reader.number(INT) if version >= _WITH_EPOCH else _NO_EPOCH
    metadata = reader.compact_text() if version >= _FLEXIBLE else reader.text()
    time = reader.number(LONG)
    if version == 1:
        reader.number(LONG)  # when it expires
    topic_id = _topic_id(reader) if version >= _FLEXIBLE else None
    return OffsetValue(CommittedOffset(offset, metadata, None if epoch == _NO_EPOCH else epoch), time, topic_id)


def _topic_id(reader: Reader) -> str | None:
    """Return the tagged field 0, as ``Uuid.toString()`` writes it; None without it."""
    for _ in range(reader.varint()):
        tag, data = reader.varint(), reader.raw(reader.varint())
        if tag == 0 and any(data):
            return base64.urlsafe_b64encode(data).decode().rstrip("=")
    return None


@dataclass(frozen=True, slots=True)
class MembersKey:
    """The group and the member that a record is about.

    :param member: None for all members of a classic group
    """

    group: str
    member: str | None = None


def decode_members_key(data: bytes) -> MembersKey | None:
    """Decode the key of a record about members; None for other records.

    :raises UndecodableRecord: when the bytes end too early
    """
    reader = Reader(data)
    kind = reader.number(SHORT)
    if kind == CLASSIC:
        return MembersKey(reader.text())
    return MembersKey(reader.text(), reader.text()) if kind in (CONSUMER_MEMBER, STREAMS_MEMBER) else None


def decode_classic_members(data: bytes) -> dict[str, int]:
    """Return the members in a ``GroupMetadataValue``: the session timeout in milliseconds by id.

    :raises UndecodableRecord: when the bytes end too early, or their version is not known
    """
    reader = Reader(data)
    version = reader.number(SHORT)
    if version not in _MEMBERS_VERSIONS:
        raise UndecodableRecord(f"version {version} of a group's members is not known", hint="a newer kops may know it")
    flexible = version >= _FLEXIBLE
    _text(reader, flexible=flexible)  # protocolType
    reader.number(INT)  # generation
    _text(reader, flexible=flexible)  # protocol
    _text(reader, flexible=flexible)  # leader
    if version >= _WITH_TIME:
        reader.number(LONG)  # currentStateTimestamp

    def member() -> tuple[str, int]:
        name = _text(reader, flexible=flexible)
        for _ in range(3 if version >= _WITH_INSTANCE else 2):  # groupInstanceId, clientId, clientHost
            _text(reader, flexible=flexible)
        if version >= _WITH_REBALANCE_TIMEOUT:
            reader.number(INT)
        session = reader.number(INT)
        for _ in range(2):  # subscription, assignment
            if flexible:
                reader.raw(max(0, reader.varint() - 1))
            else:
                reader.sized()
        if flexible:
            reader.tags()
        return name or "", session

    return dict(reader.compact_array(member) if flexible else reader.array(member))


def _text(reader: Reader, *, flexible: bool) -> str | None:
    if flexible:
        return reader.optional_text()
    length = reader.number(SHORT)
    return None if length < 0 else reader.raw(length).decode("utf-8", "replace")
