"""What a Connect worker is assigned, by the bytes of Connect's two protocols."""

import struct

import pytest

from kops.core.findings import ranges_text
from kops.gateways.kafka.groups.working import connect_work


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def assignment(version, parts, tail=b""):
    head = struct.pack(">hh", version, 0) + text("leader-1") + text("http://127.0.0.1:8083/") + struct.pack(">q", 42)
    body = b"".join(text(name) + struct.pack(">i", len(tasks)) + struct.pack(f">{len(tasks)}i", *tasks) for name, tasks in parts)
    return head + struct.pack(">i", len(parts)) + body + tail


def test_connectors_and_tasks():
    parts = [("sink", [-1, 0]), ("other-sink", [3])]
    expected = ("connector sink", "task sink-0", "task other-sink-3")
    assert connect_work(assignment(0, parts)) == expected
    assert connect_work(assignment(2, parts, struct.pack(">ii", -1, 0))) == expected


@pytest.mark.parametrize("data", [b"", b"\0", assignment(1, [("sink", [0])])[:-2], struct.pack(">hhh", 0, 0, 500)])
def test_what_cannot_be_read_is_not_known(data):
    assert connect_work(data) == ()


def test_nothing_assigned():
    assert connect_work(struct.pack(">hh", 2, 0) + text("l") + text("u") + struct.pack(">qi", 1, -1)) == ()


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([5, 3, 4, 0, 4], "0,3-5"), (range(100), "0-99"), ([0, 2, 3], "0,2-3")]
)
def test_partitions_for_people(numbers, text):
    assert ranges_text(numbers) == text
