"""Apache's file of offsets to delete records below."""

import json

import pytest

from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition
from kops.core.times import Position
from kops.operations.topics.truncate import read_offsets_file


def part(topic="t", partition=0, offset=5):
    return {"topic": topic, "partition": partition, "offset": offset}


def test_offsets_and_the_end():
    found = read_offsets_file(json.dumps({"partitions": [part(), part(partition=1, offset=-1)], "version": 1}), "f")
    assert found == {TopicPartition("t", 0): Position("offset", 5), TopicPartition("t", 1): Position("end")}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"partitions": []}',
        '{"partitions": [5]}',
        '{"partitions": [{"topic": "t"}]}',
        json.dumps({"partitions": [part(offset="5")]}),
        json.dumps({"partitions": [part(offset=True)]}),
        json.dumps({"partitions": [part(offset=-2)]}),
        json.dumps({"partitions": [part(topic=5)]}),
        json.dumps({"partitions": [part(), part(offset=6)]}),
    ],
)
def test_anything_else_is_refused_by_name(text):
    with pytest.raises(UsageProblem, match=r"file\.json"):
        read_offsets_file(text, "file.json")
