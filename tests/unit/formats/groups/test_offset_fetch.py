"""Committed offsets of many groups in one answer, held against what kafka-python makes of the same bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from kafka.protocol.consumer import OffsetFetchResponse

from kops.core.errors import UndecodableRecord
from kops.formats.groups.offset_fetch import OF_ONE_GROUP, VERSION, TopicCommits, read_answer, read_answer_of_one

Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topic = Group.OffsetFetchResponseTopics
Partition = Topic.OffsetFetchResponsePartitions


def encoded(groups):
    """An answer; groups are ids, errors, and topics with their partitions, each (number, offset, epoch, metadata, error)."""
    return OffsetFetchResponse(
        throttle_time_ms=7,
        groups=[
            Group(
                group_id=name,
                error_code=error,
                topics=[
                    Topic(
                        name=topic,
                        partitions=[
                            Partition(
                                partition_index=number,
                                committed_offset=offset,
                                committed_leader_epoch=epoch,
                                metadata=text,
                                error_code=wrong,
                            )
                            for number, offset, epoch, text, wrong in places
                        ],
                    )
                    for topic, places in topics
                ],
            )
            for name, error, topics in groups
        ],
    ).encode(version=VERSION)


def by_kafka_python(data):
    """The commits of each group, by topic and partition; None where there is an error."""
    answer = OffsetFetchResponse.decode(data, version=VERSION)
    return {
        group.group_id: None
        if group.error_code or any(one.error_code for topic in group.topics for one in topic.partitions)
        else {
            (topic.name, one.partition_index): (
                one.committed_offset,
                None if one.committed_leader_epoch == -1 else one.committed_leader_epoch,
                one.metadata or "",
            )
            for topic in group.topics
            for one in topic.partitions
            if one.committed_offset >= 0
        }
        for group in answer.groups
    }


def by_kops(data):
    return {
        group: None
        if isinstance(topics, int)
        else {
            (one.topic, partition): (offset, one.epochs.get(partition), one.metadata.get(partition, ""))
            for one in topics
            for partition, offset in zip(one.partitions, one.offsets, strict=True)
        }
        for group, topics in read_answer(data).items()
    }


numbers = some.integers(0, 2**31 - 1)
texts = some.one_of(some.none(), some.just(""), some.text(max_size=200))
partitions = some.lists(
    some.tuples(numbers, some.integers(-1, 2**63 - 1), some.integers(-1, 2**31 - 1), texts, some.sampled_from([0, 0, 0, 0, 0, 14])),
    max_size=5,
    unique_by=lambda place: place[0],
)
plain = some.lists(
    some.tuples(numbers, some.integers(0, 2**63 - 1), some.just(-1), some.sampled_from([None, ""]), some.just(0)),
    max_size=200,
    unique_by=lambda place: place[0],
)
topics = some.lists(some.tuples(some.text(max_size=10), partitions | plain), max_size=4, unique_by=lambda topic: topic[0])
answers = some.lists(
    some.tuples(some.text(max_size=10), some.sampled_from([0, 0, 0, 15]), topics), max_size=4, unique_by=lambda group: group[0]
)


@given(answers)
def test_any_answer(groups):
    data = encoded(groups)
    assert by_kops(data) == by_kafka_python(data)


@given(some.sampled_from([0, 0, 0, 15]), topics)
def test_an_answer_of_one_group_as_brokers_before_3_0_give_it(error, found):
    (expected,) = read_answer(encoded([("billing", error, found)])).values()
    one = OffsetFetchResponse.OffsetFetchResponseTopic
    place = one.OffsetFetchResponsePartition
    names = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    answer = OffsetFetchResponse(
        throttle_time_ms=7,
        error_code=error,
        topics=[one(name=topic, partitions=[place(**dict(zip(names, each, strict=True))) for each in places]) for topic, places in found],
    )
    assert read_answer_of_one(answer.encode(version=OF_ONE_GROUP)) == expected


def test_one_commit_with_metadata_among_plain_ones_is_seen_wherever_it_stands():
    for where in range(4):
        places = [(number, 5, -1, "text" if number == where else "", 0) for number in range(4)]
        assert read_answer(encoded([("billing", 0, [("orders", places)])])) == {
            "billing": [TopicCommits("orders", (0, 1, 2, 3), (5, 5, 5, 5), {}, {where: "text"})]
        }


def test_the_code_of_an_error_is_told():
    fine, wrong = (0, 5, -1, "", 0), (1, -1, -1, "", 88)
    assert read_answer(encoded([("billing", 16, []), ("orders", 0, [("orders", [fine, wrong])])])) == {"billing": 16, "orders": 88}


@given(some.integers(1, 60))
def test_an_answer_that_is_cut_off(missing):
    data = encoded([("billing", 0, [("orders", [(number, 5, 3, "", 0) for number in range(3)])])])
    with pytest.raises(UndecodableRecord):
        read_answer(data[:-missing])
