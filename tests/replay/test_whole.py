"""Records sent again as they are: every kind of record, from real producers, as a plain consumer reads both topics."""

import random

import pytest
from confluent_kafka import Producer

from kops.config.librdkafka import librdkafka_settings
from kops.gateways.wire.batch_producer import write_batches
from support.patience import HANG_SECONDS
from support.programs import Record

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
HEADERS = ((), (("h", b"1"), ("h", None), ("h", b"1")), (("schlüssel", b""), ("", b"\x00" * 200)))


def every_kind(count=600, seed=11):
    """Return records with null and empty keys and values, tombstones, repeated header names, in two partitions."""
    rng = random.Random(seed)
    some = [None, b"", b"k", b"x" * 127, b"y" * 128, b"z" * 9000]
    return [
        Record(rng.choice(some), rng.choice(some), START + rng.randrange(10**6), rng.choice(HEADERS), rng.randrange(2))
        for _ in range(count)
    ]


def transactions(servers, topic, outcomes):
    """Write a transaction of 40 records for each outcome, and end it with that outcome."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-writer", "linger.ms": 0})
    producer.init_transactions(HANG_SECONDS)
    for turn, outcome in enumerate(outcomes):
        producer.begin_transaction()
        for number in range(40):
            producer.produce(topic, b"%s-%d-%d" % (outcome.encode(), turn, number), b"t", number % 2, timestamp=START)
        producer.flush(HANG_SECONDS)
        getattr(producer, f"{outcome}_transaction")(HANG_SECONDS)


def old_times(broker, topic):
    """Write the timestamps that librdkafka and Java do not: 0, and none (-1)."""
    import pyarrow

    kinds = {"partition": pyarrow.int32(), "key": pyarrow.binary(), "value": pyarrow.binary(), "timestamp": pyarrow.int64()}
    rows = {"partition": [0, 0, 1], "key": [b"zero", b"none", b"none"], "value": [b"v", None, b""], "timestamp": [0, -1, -1]}
    table = pyarrow.table({name: pyarrow.array(rows[name], kind) for name, kind in kinds.items()})
    write_batches(iter(table.to_batches()), topic, librdkafka_settings(broker.connection))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_all_kinds_of_records_stay_as_they_are(broker, scene, kops, codec, as_pinned):
    source, target = scene.topic("source", compression_type=codec if codec != "none" else "producer"), scene.topic("target")
    scene.cluster.produce(source, every_kind())
    transactions(broker.bootstrap_servers, source, ["commit", "abort", "abort", "commit"])
    old_times(broker, source)
    scene.cluster.produce(source, every_kind(60, seed=5))
    expected = scene.read(source)
    assert len(expected) == 600 + 80 + 3 + 60
    done = as_pinned("kops replay run", kops("replay", "run", source, "--to", target, "--yes", "-o", "json").ok())
    assert scene.read(target) == expected
    values = [item["value"] for item in done["items"]]
    assert sum(value["records"] for value in values) == len(expected)
    assert all((value["records"], value["fingerprint"]) == tuple(value["in_target"].values()) for value in values)
    assert "proven: 743 records" in done["messages"][0]
    replay = kops("journal", "show", "last", "-o", "json").ok().json["plan"]["arguments"]["replay"]
    assert not [group for group in kops("groups", "list", "-o", "name").ok().out.splitlines() if group.startswith(replay)]


def test_a_range_begins_and_ends_within_batches(scene, kops):
    source, target = scene.topic("source"), scene.topic("target")
    records = [Record(b"%d" % n, b"v" * 50, START + n, HEADERS[n % 2], n % 2) for n in range(1000)]
    scene.cluster.produce(source, records)
    scene.cluster.commit(f"{scene.prefix}-g", {(source, 0): 3, (source, 1): 490})
    expected = scene.cluster.read(source)
    kops("replay", "run", source, "--to", target, "--range", f"7..@{START + 900}", "--yes").ok()
    assert scene.read(target) == [r for r in scene.read(source) if START + 14 <= r.timestamp < START + 900]
    again = ("--guarantee", "at-least-once", "--yes")
    done = kops("replay", "run", f"{source}:1", "--to", target, "--from-group", f"{scene.prefix}-g", *again, "-o", "json").ok().json
    assert [item["value"]["records"] for item in done["items"]] == [10]
    tail = [record for record in scene.read(target) if record.partition == 1][-10:]
    assert tail == [record for record in scene.read(source) if record.partition == 1][490:]
    until = kops("replay", "run", f"{source}:0", "--to", target, "--until-group", f"{scene.prefix}-g", "--yes", "-o", "json").ok().json
    assert [item["value"]["records"] for item in until["items"]] == [3]
    kops("groups", "delete", f"{scene.prefix}-g", "--confirm", f"{scene.prefix}-g")
    assert expected == scene.cluster.read(source)


def test_times_of_appending(scene, kops):
    source, target = scene.topic("source", message_timestamp_type="LogAppendTime"), scene.topic("target")
    scene.cluster.produce(source, every_kind(50))
    assert "change partitions" not in kops("replay", "run", source, "--to", target, "--yes").ok().err
    assert scene.read(target) == scene.read(source)  # to a topic of CreateTime they stay
    refused = kops("replay", "run", target, "--to", source, "--yes")
    assert (refused.code, "LogAppendTime" in refused.err) == (5, True)
    assert len(scene.read(source)) == 50
    kops("replay", "run", target, "--to", source, "--accept-new-timestamps", "--yes").ok()
    by_partition = {p: [(r.key, r.value, r.headers) for r in scene.read(source) if r.partition == p] for p in (0, 1)}
    assert all(rows == rows[: len(rows) // 2] * 2 for rows in by_partition.values())


def test_by_the_key_as_other_producers_do(scene, kops):
    source, target, other = scene.topic("source"), scene.topic("target", 5), scene.topic("other", 5)
    records = [Record(b"key-%d" % (n % 300), b"%d" % n, START + n, HEADERS[n % 3], n % 2) for n in range(3000)]
    scene.cluster.produce(source, records)
    scene.cluster.produce(other, [Record(r.key, r.value, r.timestamp, r.headers) for r in records])
    done = kops("replay", "run", source, "--to", target, "--yes", "--compression", "lz4").ok()
    assert "murmur2 of the key" in done.err
    assert f"{target} has 5 partitions and {source} 2: keys change partitions." in done.err
    assert f"kops state repartition FILE --partitions 5 --input {source}={target}" in done.err
    by_rows = scene.topic("rows", 5)
    kops("replay", "run", source, "--to", by_rows, "--key", "string", "--set", "key=key", "--compression", "zstd", "--yes").ok()
    placed = sorted(scene.read(other), key=repr)
    assert sorted(scene.read(target), key=repr) == sorted(scene.read(by_rows), key=repr) == placed
    for key in (b"key-0", b"key-299"):  # the order of a key, which was in one partition
        assert [r.value for r in scene.read(target) if r.key == key] == [r.value for r in records if r.key == key]


def test_what_came_after_undo_has_looked_stays(scene, kops, monkeypatch):
    """Others write when all was read back, and again when the plan is made."""
    from kops.operations.replay import run

    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, every_kind(100))
    done = kops("replay", "run", source, "--to", target, "--yes", "-o", "json").ok().json
    plain = run.plan_truncate_at

    def while_others_write(*given):
        scene.cluster.produce(target, every_kind(7))
        plan = plain(*given)
        scene.cluster.produce(target, every_kind(5))
        return plan

    monkeypatch.setattr(run, "plan_truncate_at", while_others_write)
    kops("undo", done["journal_id"], "--confirm", target).ok()
    assert len(scene.read(target)) == 12


def test_what_can_be_taken_back_and_what_cannot(scene, kops, tmp_path):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, every_kind(100))
    saved = tmp_path / "plan.json"
    kops("replay", "run", source, "--to", target, "--plan-out", saved).ok()
    before = kops("apply", saved, "--yes", "-o", "json").ok().json
    twice = kops("apply", saved, "--yes")
    assert (twice.code, before["journal_id"] in twice.err) == (5, True)
    assert scene.read(target) == scene.read(source)
    dry = kops("replay", "run", source, "--to", source, "--range", "..5", "--dry-run", "-o", "json").ok().json
    assert dry["arguments"]["preview"]["records"] == 10
    assert len(dry["arguments"]["preview"]["samples"]) == 5
    assert any("is source and target" in warning for warning in dry["warnings"])
    shared = kops("replay", "run", source, "--to", source, "--range", "..5", "--yes", "-o", "json").ok().json
    assert len(scene.read(source)) == 110
    refused = kops("undo", shared["journal_id"], "--confirm", source)
    assert (refused.code, "10 records that the replay sent" in refused.err, "had records" in refused.err) == (5, True, True)
    kops("undo", before["journal_id"], "--confirm", target).ok()
    assert scene.read(target) == []
    again = kops("replay", "run", source, "--to", target, "--yes", "-o", "json").ok().json
    scene.cluster.produce(target, every_kind(1))
    refused = kops("undo", again["journal_id"], "--confirm", target)
    assert (refused.code, "1 record of others" in refused.err) == (5, True)
    assert len(scene.read(target)) == 111
    shown = kops("undo", again["journal_id"], "--accept-loss", "--dry-run", "-o", "json").ok().json
    assert (len(shown["losses"]), f"1 record of others in {target}" in shown["losses"][0]) == (1, True)
    kops("undo", again["journal_id"], "--accept-loss", "--confirm", target).ok()
    assert scene.read(target) == []
