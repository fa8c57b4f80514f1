"""Sums over the offsets of partitions."""

from kops.operations.topics.offsets import by_topic, total_text


def row(topic, partition, offsets, since=None):
    return {"topic": topic, "partition": partition, "offsets": offsets} | ({} if since is None else {"offsets_since": since})


def test_sums_by_topic():
    rows = [row("a", 0, 3, 1), row("a", 1, 4, 0), row("b", 0, 0, 0)]
    assert by_topic(rows) == [
        {"topic": "a", "partitions": 2, "offsets": 7, "offsets_since": 1},
        {"topic": "b", "partitions": 1, "offsets": 0, "offsets_since": 0},
    ]
    assert total_text(rows) == "7 offsets in 3 partitions of 2 topics; 1 since the time"


def test_a_partition_that_could_not_be_asked_spoils_its_sum_and_no_other():
    rows = [row("a", 0, 3000), row("a", 1, None), row("b", 0, 5)]
    assert by_topic(rows) == [{"topic": "a", "partitions": 2, "offsets": None}, {"topic": "b", "partitions": 1, "offsets": 5}]
    assert total_text(rows) == "3,005 offsets in 3 partitions of 2 topics; 1 partition could not be asked"
