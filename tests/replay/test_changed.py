"""Records chosen, changed and routed on their way by Spark SQL or a function."""

import json

import pytest

from support.programs import Record

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
VALUES = "json:id long, region string, price double"


def orders(count=400):
    """Return orders as JSON, with a tombstone now and then, in two partitions."""

    def value(n):
        return None if n % 50 == 49 else json.dumps({"id": n, "region": ("eu", "us", "ap")[n % 3], "price": n / 4}).encode()

    return [Record(b"k%d" % (n % 20), value(n), START + n, (("n", b"%d" % n), ("old", b"x")), n % 2) for n in range(count)]


def test_chosen_changed_and_in_order(scene, kops):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, orders())
    change = ("--set", "value=upper(value.region)", "--set", "headers[why]=concat('price ', value.price)", "--set", "headers[old]=null")
    where = ("--value", VALUES, "--where", "value.price >= 50 and region is null or value is null")
    refused = kops("replay", "run", source, "--to", target, *where, "--yes")
    assert (refused.code, "`region`" in refused.err, "columns: key, value" in refused.err) == (2, True, True)
    where = ("--value", VALUES, "--where", "value.price >= 50 or value is null")
    done = kops("replay", "run", source, "--to", target, *where, *change, "--yes", "-o", "json").ok().json

    def changed(record):
        if record.value is None:
            return Record(record.key, None, record.timestamp, (record.headers[0],), record.partition)
        body = json.loads(record.value)
        why = ("why", f"price {body['price']}".encode())
        return Record(record.key, body["region"].upper().encode(), record.timestamp, (record.headers[0], why), record.partition)

    expected = [changed(r) for r in scene.read(source) if r.value is None or json.loads(r.value)["price"] >= 50]
    assert scene.read(target) == expected
    assert sum(item["value"]["in_target"]["records"] for item in done["items"]) == len(expected)


def test_routed_to_topics_that_are_there(scene, kops):
    source = scene.topic("source")
    scene.cluster.produce(source, orders())
    route = ("--value", VALUES, "--where", "value is not null", "--to-expression", f"concat('{scene.prefix}-', value.region)")
    scene.topic("eu", 3)
    missing = kops("replay", "run", source, *route, "--yes")
    assert (missing.code, f"{scene.prefix}-ap, {scene.prefix}-us" in missing.err, "nothing was sent" in missing.err) == (5, True, True)
    scene.topic("us", 3), scene.topic("ap", 3)
    undeclared = kops("replay", "run", source, *route, "--declare", f"{scene.prefix}-eu,{scene.prefix}-us", "--yes")
    assert (undeclared.code, f"the topic {scene.prefix}-ap, which is not a target" in undeclared.out) == (1, True)
    assert [scene.read(f"{scene.prefix}-{region}") for region in ("eu", "us", "ap")] == [[], [], []]
    as_it_was = "pmod(value.id, 3) + if(cast(headers[1].value as string) = 'x' and timestamp_ms % 2 = value.id % 2, 0, 100)"
    change = ("--set", "timestamp=timestamp_ms + 1", "--set", "headers[old]='new'", "--set", "headers[id]=string(value.id)")
    done = kops("replay", "run", source, *route, "--partition-by", as_it_was, *change, "--yes").ok()
    assert "proven: 392 records" in done.err
    for region in ("eu", "us", "ap"):
        wanted = [r for r in orders() if r.value and json.loads(r.value)["region"] == region]
        there = scene.read(f"{scene.prefix}-{region}")
        placed = {
            (n % 3, r.key, r.value, r.timestamp + 1, (r.headers[0], ("old", b"new"), ("id", b"%d" % n)))
            for r in wanted
            for n in [json.loads(r.value)["id"]]
        }
        assert {(r.partition, r.key, r.value, r.timestamp, r.headers) for r in there} == placed
        assert len(there) == len(placed)
    outside = kops("replay", "run", source, "--to", f"{scene.prefix}-eu", "--partition-by", "partition + 2", "--yes")
    assert (outside.code, "not a target" in outside.out) == (6, True)
    assert len(scene.read(f"{scene.prefix}-eu")) == 131 + 200  # those of partition 0 go to 2


def test_by_a_function(scene, kops):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, [Record(None, b"v%d" % n, START + n, (), n % 2) for n in range(100)])
    kops("replay", "run", source, "--to", target, "--partition-by", "keep", "--plugin", "support.replayed:shouted", "--yes").ok()
    found = [r.value for r in scene.read(target)]
    assert found == [value for r in scene.cluster.read(source) if r.offset % 2 == 0 for value in (r.value, r.value.upper())]
    mixed = kops("replay", "run", source, "--to", target, "--partition-by", "keep", "--plugin", "support.replayed:shuffled", "--yes")
    assert (mixed.code, "mixes or reorders" in mixed.out) == (1, True)
    poor = kops("replay", "run", source, "--to", target, "--plugin", "support.replayed:poor", "--yes")
    assert (poor.code, "headers, offset, partition" in poor.err) == (2, True)
    assert len(scene.read(target)) == 100


def test_what_is_not_of_its_format_and_a_limit(scene, kops):
    source, first, target = (scene.topic(name) for name in ("source", "first", "target"))
    good = [Record(b"k", b'{"id": %d}' % n, START + n, (), n % 2) for n in range(60)]
    scene.cluster.produce(source, [*good[:30], Record(b"k", b"poison", START, (), 0), *good[30:]])
    choose = ("--value", "json:id long", "--where", "value.id is not null")
    wrong = kops("replay", "run", source, "--to", first, *choose, "--yes")
    assert (wrong.code in (1, 6), f"the value of {source}:0 at offset 15 is not of its format" in wrong.out) == (True, True)
    assert [r for r in scene.read(first) if r.partition == 0] == []
    skipped = kops("replay", "run", source, "--to", target, *choose, "--skip-undecodable", "--rate", "1000", "--limit", "35", "--yes").ok()
    assert "proven: 35 records" in skipped.err
    assert [(r.partition, r.value) for r in scene.read(target)] == [
        (r.partition, r.value) for r in scene.read(source) if r.value != b"poison"
    ][:35]


def test_a_number_that_its_column_does_not_hold_is_named_and_never_rounded(scene, kops):
    """By the text that was produced: as a double 12345678901234567.89 is 12345678901234568, which --where must not find."""
    source, target = scene.topic("source"), scene.topic("target")
    records = [Record(b"k", b'{"id": %d, "price": 0.1}' % n, START + n, (), 0) for n in range(3)]
    scene.cluster.produce(source, [*records, Record(b"k", b'{"id": 4294967296, "price": 12345678901234567.89}', START, (), 0)])
    run = ("replay", "run", source, "--to", target, "--yes", "--where")
    for more in ((), ("--skip-undecodable",)):
        lost = kops(*run, "value.price = 12345678901234568", "--value", "json:price double", *more)
        said = f"the value of {source}:0 at offset 3 has no place in a column: price: 12345678901234567.89 does not fit into double"
        assert (lost.code in (1, 6), said in lost.out + lost.err) == (True, True), (lost.out, lost.err)
    narrow = kops(*run, "value.id >= 0", "--value", "json:id int")
    assert f"{source}:0 at offset 3 has no place in a column: id: 4294967296 does not fit into int" in narrow.out + narrow.err
    outside = kops(*run, "value.id > 5", "--value", "json:id long", "--partition-by", "value.id")
    assert (outside.code, "not a target" in outside.out) == (1, True), outside.out
    rounds = kops(*run, "true", "--value", "json:id long", "--key", "double", "--set", "key=value.id")
    assert (rounds.code, "cast(value.id as double)" in rounds.err) == (2, True), rounds.err
    assert scene.read(target) == []
    kops(*run, "value.price = 12345678901234567.89", "--value", "json:price decimal(38,2)").ok()
    assert [record.value for record in scene.read(target)] == [b'{"id": 4294967296, "price": 12345678901234567.89}']
