"""The JSON that Apache's ``kafka-delete-records --offset-json-file`` takes (``DeleteRecordsCommand``)."""

from __future__ import annotations

import json
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition
from kops.core.times import Position

_HINT = 'it is like {"partitions": [{"topic": "orders", "partition": 0, "offset": 120}], "version": 1}; offset -1 is the end'


def read_offsets_file(text: str, name: str) -> dict[TopicPartition, Position]:
    """Return per partition where its log is to start.

    :param name: of the file, for messages
    :raises UsageProblem: if it is not such a file, or names a partition twice
    """
    try:
        body = json.loads(text)
        rows = [_row(row) for row in body["partitions"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageProblem(f"{name} is not a file of offsets: {error!r}", hint=_HINT) from error
    found: dict[TopicPartition, Position] = {}
    for place, offset in rows:
        if place in found:
            raise UsageProblem(f"{name} names {place} twice", hint="give one offset to each partition")
        if offset < -1:
            raise UsageProblem(f"{name}: {offset} is not an offset of {place}", hint="offsets count from 0; -1 is the end")
        found[place] = Position("end") if offset == -1 else Position("offset", offset)
    if not found:
        raise UsageProblem(f"{name} names no partitions", hint=_HINT)
    return found


def _row(row: Any) -> tuple[TopicPartition, int]:
    topic, partition, offset = row["topic"], row["partition"], row["offset"]
    if not isinstance(topic, str) or any(isinstance(number, bool) or not isinstance(number, int) for number in (partition, offset)):
        raise TypeError(f"{row} has a value of another type where a string or an integer is expected")
    return TopicPartition(topic, partition), offset
