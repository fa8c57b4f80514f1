"""Keys of session stores: ``key, end as int64, start as int64``; in a changelog, in a topic and in suppress alike.

``SessionKeySchema.toBinary`` and ``SessionWindowedSerializer``. Both bounds are times of records, and both belong to the session.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord, UsageProblem

_BOUNDS = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A key and the session that it is of.

    :param key: bytes of the application's serde
    :param start_ms: time of its first record, in milliseconds since the epoch
    :param end_ms: time of its last record
    """

    key: bytes
    start_ms: int
    end_ms: int


def encode(session: SessionKey) -> bytes:
    """Return the bytes of a key.

    :raises UsageProblem: when a time is out of its range
    """
    try:
        return session.key + _BOUNDS.pack(session.end_ms, session.start_ms)
    except struct.error as wrong:
        raise UsageProblem(f"no session lasts from {session.start_ms} to {session.end_ms}: {wrong}") from wrong


def decode(data: bytes) -> SessionKey:
    """Return what the key of a session store holds.

    :raises UndecodableRecord: when it is too short, or holds no session: Kafka Streams itself cannot read such a key
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
