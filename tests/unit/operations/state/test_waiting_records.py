"""What waits in a repartition topic, or between the sides of a foreign-key join: distinguished, reported, or refused."""

from types import SimpleNamespace

import pytest

from kops.core.errors import Refused
from kops.core.models import Bounds, CommittedOffset, Partition, Topic, TopicPartition
from kops.core.records.models import Record
from kops.core.statefile import parse_state_file
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.waiting_records import _matched, pending_answers, without_waiting
from kops.spark.stores.repartition import SentRecord

TOPIC = "a-s-repartition"
AT = TopicPartition("orders", 0)
SOURCE = {"topic": "orders", "key": "string", "value": "string"}


def store_of(**fields):
    body = {"from": SOURCE, "key_by": "value", "repartition": TOPIC, **fields}
    file = parse_state_file("f", {"application": "a", "tables": {"t": {"from": SOURCE}}, "stores": {"s": body}})
    return file, file.stores[0]


def services_with(*records):
    """Return services whose repartition topic has these records, and nothing else."""
    batches = [[Record(TOPIC, 0, at, time, key, b"") for at, (key, time) in enumerate(records)]]
    reads = SimpleNamespace(read=lambda ranges, **_how: batches if ranges else [])
    offsets = SimpleNamespace(bounds=lambda places, **_how: dict.fromkeys(places, Bounds(0, len(records))))
    return SimpleNamespace(kafka=SimpleNamespace(records=reads, offsets=offsets))


def looked_at(file, store, *records):
    facts = StoreFacts(store, {AT: Bounds(0, 9)}, {}, {}, tasks=1)
    engine = SimpleNamespace(services=services_with(*records))
    return facts, without_waiting(
        engine.services, engine, file, facts, InputOffsets({AT: 9}, {AT: CommittedOffset(9)}), skip_undecodable=False
    )


def test_where_nothing_waits_all_of_the_input_counts():
    file, store = store_of(aggregate={"count": True})
    facts, found = looked_at(file, store)
    assert found == facts


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"from": {"table": "t"}, "aggregate": {"count": True}}, "of a table its changes wait there"),
        ({"explode": "split(value, ' ')", "aggregate": {"count": True}}, "only some may wait"),
    ],
)
def test_what_is_no_record_of_the_input_is_refused(fields, said):
    file, store = store_of(**fields)
    with pytest.raises(Refused, match=said) as refused:
        looked_at(file, store, (b"k", 5))
    assert f"{TOPIC}:0 holds records not processed by a" in refused.value.message


def sent(partition, *times):
    return [SentRecord("orders", partition, 10 * partition + at, time, b"k") for at, time in enumerate(times)]


def test_the_last_records_of_a_key_wait():
    _, store = store_of(aggregate={"last": "value"})
    found = _matched(store, {b"k": [3, 7]}, {b"k": [*sent(0, 1, 3), *sent(1, 2, 7)]}, "where")
    assert found == {TopicPartition("orders", 0): (1,), TopicPartition("orders", 1): (11,)}


def test_other_records_than_the_last_ones_are_refused():
    _, store = store_of(aggregate={"count": True})
    with pytest.raises(Refused, match="are not the last ones of the input"):
        _matched(store, {b"k": [1]}, {b"k": sent(0, 1, 3)}, "where")
    with pytest.raises(Refused, match="are not the last ones of the input"):
        _matched(store, {b"other": [1]}, {b"k": sent(0, 1, 3)}, "where")


def test_of_several_partitions_at_one_time_only_a_count_does_not_care():
    waiting, both = {b"k": [5]}, {b"k": [*sent(0, 5), *sent(1, 5)]}
    _, count = store_of(aggregate={"count": True})
    assert sum(map(len, _matched(count, waiting, both, "where").values())) == 1
    _, last = store_of(aggregate={"last": "value"})
    with pytest.raises(Refused, match="it is unknown which they are"):
        _matched(last, waiting, both, "where")


def test_what_a_foreign_key_join_has_not_heard_is_said():
    left, right = {"from": SOURCE}, {"from": {**SOURCE, "topic": "people"}}
    joined = {"from": {"table": "left"}, "join": {"table": "right", "on": "left", "value": "left", "as": "string"}}
    body = {"application": "a", "tables": {"left": left, "right": right}, "stores": {"s": joined}}
    asked = "a-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic"
    answered, named = "a-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000012-topic", "a-owner-subscription-response-topic"
    others = ["orders", "a-s-changelog", "b-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000012-topic"]
    there = {name: Topic(name, (Partition(0, 1, (1,), (1,)),), None) for name in (asked, answered, named, *others)}
    topics = SimpleNamespace(names=lambda: list(there), existing=lambda names: {name: there[name] for name in names})
    reads = SimpleNamespace(read=lambda _ranges, **_how: [["a record"]])
    offsets = SimpleNamespace(bounds=lambda places, **_how: dict.fromkeys(places, Bounds(0, 3)))
    services = SimpleNamespace(kafka=SimpleNamespace(topics=topics, records=reads, offsets=offsets))
    cut = InputOffsets({}, {TopicPartition(answered, 0): CommittedOffset(3)})
    said = pending_answers(services, parse_state_file("f", body), cut)
    assert [sentence.split()[0] for sentence in said] == [f"{asked}:0", f"{named}:0"]
    assert pending_answers(services, store_of(aggregate={"count": True})[0], cut) == []
