"""The records of ``__consumer_offsets`` in a form that JSON can represent: what each is about, and of commits and members what it holds.

A key begins with the type of its record (``CoordinatorRecordType``), and the group's name follows in all. Values of types that kops does
not decode are shown as bytes. Pure.
"""

from __future__ import annotations

from typing import Any

from kops.core.errors import UndecodableRecord
from kops.core.times import time_text
from kops.formats.base import as_text_or_base64
from kops.formats.groups.consumer_offsets import CLASSIC, decode_classic_members, decode_key, decode_value
from kops.formats.kafka_types import SHORT, Reader

TYPES = {
    0: "offset_commit",
    1: "offset_commit",
    2: "group_metadata",
    3: "consumer_group_metadata",
    4: "consumer_group_partition_metadata",
    5: "consumer_group_member_metadata",
    6: "consumer_group_target_assignment_metadata",
    7: "consumer_group_target_assignment_member",
    8: "consumer_group_current_member_assignment",
    10: "share_group_member_metadata",
    11: "share_group_metadata",
    12: "share_group_target_assignment_metadata",
    13: "share_group_target_assignment_member",
    14: "share_group_current_member_assignment",
    15: "share_group_state_partition_metadata",
    16: "consumer_group_regular_expression",
    17: "streams_group_metadata",
    19: "streams_group_member_metadata",
    20: "streams_group_target_assignment_metadata",
    21: "streams_group_target_assignment_member",
    22: "streams_group_current_member_assignment",
    23: "streams_group_topology",
}
_MEMBERS = (5, 7, 8, 10, 13, 14, 19, 21, 22)
_EXPRESSION = 16


def shown_record(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    """Return a record's key and value; what cannot be decoded is bytes: ``{"data": ..., "encoding": ...}``."""
    if key is None:
        return None, value and as_text_or_base64(value)
    try:
        kind, shown = _key(key)
    except UndecodableRecord:
        return as_text_or_base64(key), None if value is None else as_text_or_base64(value)
    if value is None:
        return shown, None
    try:
        return shown, _value(kind, value)
    except UndecodableRecord:
        return shown, as_text_or_base64(value)


def _key(data: bytes) -> tuple[int, dict[str, Any]]:
    reader = Reader(data)
    kind = reader.number(SHORT)
    if kind not in TYPES:
        raise UndecodableRecord(f"records of type {kind} are not known", hint="a newer kops may know them")
    commit = decode_key(data)
    if commit is not None:
        return kind, {"type": TYPES[kind], "group": commit.group, "topic": commit.partition.topic, "partition": commit.partition.partition}
    shown = {"type": TYPES[kind], "group": reader.text()}
    if kind in _MEMBERS:
        shown["member"] = reader.text()
    elif kind == _EXPRESSION:
        shown["regular_expression"] = reader.text()
    return kind, shown


def _value(kind: int, data: bytes) -> dict[str, Any]:
    if TYPES[kind] == "offset_commit":
        found = decode_value(data)
        committed = found.committed
        return {
            "offset": committed.offset,
            "leader_epoch": committed.leader_epoch,
            "metadata": committed.metadata,
            "committed_at": time_text(found.time),
            "topic_id": found.topic_id,
        }
    return {"members": sorted(decode_classic_members(data))} if kind == CLASSIC else as_text_or_base64(data)
