"""The records of ``__consumer_offsets`` that list the members of a group, as Kafka's group coordinators write them.

A classic group has one record with all its members (``GroupMetadataKey`` 2, ``GroupMetadataValue`` 0 to 4). In the consumer and streams
protocols each member has a record of its own (``ConsumerGroupMemberMetadataKey`` 5, ``StreamsGroupMemberMetadataKey`` 19), and a
tombstone after it left. Schemas as in ``consumer_offsets``. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.kafka_types import INT, LONG, SHORT, Reader

CLASSIC, CONSUMER_MEMBER, STREAMS_MEMBER = 2, 5, 19
_VERSIONS = range(5)
_WITH_REBALANCE_TIMEOUT, _WITH_TIME, _WITH_INSTANCE, _FLEXIBLE = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class MembersKey:
    """The group and the member that a record is about.

    :param member: None for all members of a classic group
    """

    group: str
    member: str | None = None


def members_prefixes(group: str) -> tuple[bytes, ...]:
    """Return the prefixes of the keys of such records for a group."""
    name = group.encode()
    return tuple(SHORT.pack(kind) + SHORT.pack(len(name)) + name for kind in (CLASSIC, CONSUMER_MEMBER, STREAMS_MEMBER))


def decode_members_key(data: bytes) -> MembersKey | None:
    """Decode the key of a record about members; None for other records.

    :raises UndecodableRecord: when the bytes end too early
    """
    reader = Reader(data)
    kind = reader.number(SHORT)
    if kind == CLASSIC:
        return MembersKey(reader.text())
    return MembersKey(reader.text(), reader.text()) if kind in (CONSUMER_MEMBER, STREAMS_MEMBER) else None


def decode_classic_members(data: bytes) -> frozenset[str]:
    """Return the ids of the members in a ``GroupMetadataValue``.

    :raises UndecodableRecord: when the bytes end too early, or their version is not known
    """
    reader = Reader(data)
    version = reader.number(SHORT)
    if version not in _VERSIONS:
        raise UndecodableRecord(f"version {version} of a group's members is not known", hint="a newer kops may know it")
    flexible = version >= _FLEXIBLE
    _text(reader, flexible=flexible)
    reader.number(INT)
    _text(reader, flexible=flexible)
    _text(reader, flexible=flexible)
    if version >= _WITH_TIME:
        reader.number(LONG)

    def member() -> str:
        name = _text(reader, flexible=flexible)
        for _ in range(3 if version >= _WITH_INSTANCE else 2):
            _text(reader, flexible=flexible)
        for _ in range(2 if version >= _WITH_REBALANCE_TIMEOUT else 1):
            reader.number(INT)
        for _ in range(2):
            if flexible:
                reader.raw(max(0, reader.varint() - 1))
            else:
                reader.sized()
        if flexible:
            reader.tags()
        return name or ""

    return frozenset(reader.compact_array(member) if flexible else reader.array(member))


def _text(reader: Reader, *, flexible: bool) -> str | None:
    if flexible:
        return reader.optional_text()
    length = reader.number(SHORT)
    return None if length < 0 else reader.raw(length).decode("utf-8", "replace")
