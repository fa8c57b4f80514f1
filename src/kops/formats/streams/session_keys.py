"""Keys of session stores: ``key, end as int64, start as int64``; the same in changelogs, other topics and suppress.

See ``SessionKeySchema.toBinary`` and ``SessionWindowedSerializer``. Both bounds are timestamps of records, and both are inclusive.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord

_BOUNDS = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A key and its session.

    :param key: bytes of the application's serde
    :param start_ms: timestamp of its first record, in milliseconds since the epoch
    :param end_ms: timestamp of its last record
    """

    key: bytes
    start_ms: int
    end_ms: int


def decode(data: bytes) -> SessionKey:
    """Decode the key of a session store.

    :raises UndecodableRecord: when it is too short, or does not hold a session: Kafka Streams itself cannot read such a key
    """
    at = len(data) - _BOUNDS.size
    if at < 0:
        raise UndecodableRecord(f"{len(data)} bytes are too few for the key of a session: its bounds alone take {_BOUNDS.size}")
    end_ms, start_ms = _BOUNDS.unpack_from(data, at)
    if start_ms < 0:
        raise UndecodableRecord(f"a session cannot begin at {start_ms}, before the epoch")
    if end_ms < start_ms:
        raise UndecodableRecord(f"a session cannot end at {end_ms}, before it begins at {start_ms}")
    return SessionKey(data[:at], start_ms, end_ms)
