"""Foreign-key joins of two tables: subscriptions to keys of the other table, and the responses to them.

The subscription store has keys of ``CombinedKeySchema`` and values of ``SubscriptionWrapperSerde``. The registration topic has the same
values under the foreign key; the response topic has values of ``SubscriptionResponseWrapperSerde`` under the primary key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kops.core.errors import UndecodableRecord
from kops.formats.streams.reading import Reader

HASH_SIZE = 16
_NO_HASH = 0x80
_NEWEST_SUBSCRIPTION = 1
_NEWEST_RESPONSE = 0
_PARTITION_SIZE = 4


class Instruction(IntEnum):
    """What the other table does with a subscription (``SubscriptionWrapper.Instruction``)."""

    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


@dataclass(frozen=True, slots=True)
class CombinedKey:
    """A key of the subscription store: a key of the right table, and a key of the left table that refers to it."""

    foreign_key: bytes
    primary_key: bytes


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of a record of the left table to a key of the right table.

    :param value_hash: 128-bit murmur3 of the left value's bytes; None when the value was deleted
    :param primary_partition: partition to respond to; only in version 1, not in version 0 (``upgrade.from`` 3.3 or older)
    """

    primary_key: bytes
    instruction: Instruction
    value_hash: bytes | None
    primary_partition: int | None


@dataclass(frozen=True, slots=True)
class Response:
    """The response of the right table.

    :param value: of the right table; None when it has none, or when its serde wrote zero bytes, which looks the same
    :param value_hash: as in the subscription, so that outdated responses can be dropped
    """

    value: bytes | None
    value_hash: bytes | None


def decode_key(data: bytes) -> CombinedKey:
    """Decode a key.

    :raises UndecodableRecord: when it is shorter than the length in it requires
    """
    reader = Reader(data)
    return CombinedKey(reader.required(), reader.rest())


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription.

    :raises UndecodableRecord: when it is too short, or its version or instruction is not known
    """
    reader = Reader(data)
    version, has_hash = _version(reader, _NEWEST_SUBSCRIPTION)
    number = reader.int8()
    if number not in Instruction.__members__.values():
        raise UndecodableRecord(f"instruction {number} of a subscription is not known")
    value_hash = reader.raw(HASH_SIZE) if has_hash else None
    if version == 0:
        return Subscription(reader.rest(), Instruction(number), value_hash, None)
    primary_key = reader.raw(reader.remaining - _PARTITION_SIZE)
    return Subscription(primary_key, Instruction(number), value_hash, reader.int32())


def decode_response(data: bytes) -> Response:
    """Decode a response.

    :raises UndecodableRecord: when it is too short, or its version is not known
    """
    reader = Reader(data)
    _, has_hash = _version(reader, _NEWEST_RESPONSE)
    value_hash = reader.raw(HASH_SIZE) if has_hash else None
    return Response(reader.rest() or None, value_hash)


def _version(reader: Reader, newest: int) -> tuple[int, bool]:
    first = reader.raw(1)[0]
    version = first & ~_NO_HASH
    if version > newest:
        raise UndecodableRecord(f"version {version} is not known, {newest} is the newest")
    return version, not first & _NO_HASH
