"""Topics archived as Parquet, again and again, and restored: what other readers of Parquet and plain consumers see."""

import json
import time
from datetime import date, timedelta
from types import SimpleNamespace

import pyarrow.dataset
import pytest
from confluent_kafka import Producer

from kops.config import durable
from kops.operations.archive import place
from kops.operations.engine import stable
from kops.operations.replay import restore
from support.programs import Record
from support.streams_apps import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
HOUR = 3_600_000


def many(first, count):
    """Return records of every unusual kind, in two partitions, over days."""

    def one(n):
        headers = (("h", b"1"), ("h", None), ("n", b"%d" % n)) if n % 3 else ()
        return Record(None if n % 7 == 0 else b"k%d" % (n % 20), (None, b"", b"v%d" % n)[n % 3], START + n * HOUR, headers, n % 2)

    return [one(n) for n in range(first, first + count)]


def produce_in_transactions(servers, topic, chunks):
    """Write each chunk in a transaction; every second is aborted."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions()
    for number, chunk in enumerate(chunks):
        producer.begin_transaction()
        for r in chunk:
            producer.produce(topic, r.value, r.key, r.partition, timestamp=r.timestamp, headers=list(r.headers))
        producer.flush()
        producer.abort_transaction() if number % 2 else producer.commit_transaction()
    Cluster(servers).settle(topic)


def hold_back(monkeypatch, servers, topic):
    """Hold the last stable offsets of a new topic back, as markers do that brokers have yet to write, until kops waits for them."""
    other, wait_for_leaders = Producer({"bootstrap.servers": servers, "transactional.id": topic}), restore._wait_for_leaders

    def begin(services, targets):
        wait_for_leaders(services, targets)
        other.init_transactions()
        other.begin_transaction()
        for partition in range(targets[topic]):
            other.produce(topic, b"other", partition=partition)
        other.flush()

    def end(seconds):
        monkeypatch.setattr(stable, "time", time)
        other.abort_transaction()

    monkeypatch.setattr(restore, "_wait_for_leaders", begin)
    monkeypatch.setattr(stable, "time", SimpleNamespace(monotonic=time.monotonic, sleep=end))


def parquet(folder):
    """Return an archive's records as Arrow reads them, and the days of its folders."""
    rows = []
    for run in sorted((folder / "records").iterdir()):
        rows += pyarrow.dataset.dataset(run, format="parquet", partitioning="hive").to_table().to_pylist()
    rows.sort(key=lambda row: (row["partition"], row["offset"]))
    records = [
        Record(
            row["key"],
            row["value"],
            row["timestamp_ms"],
            tuple((each["key"], each["value"]) for each in row["headers"] or ()),
            row["partition"],
            row["offset"],
        )
        for row in rows
    ]
    return records, {(row["day"], row["timestamp_ms"] // (24 * HOUR)) for row in rows}, {row["timestamp_type"] for row in rows}


def test_archived_again_and_again_and_restored(scene, kops, tmp_path, unique, as_pinned, monkeypatch):
    cluster, source, folder = scene.cluster, scene.topic("source", max_message_bytes="2000000"), tmp_path / "archive"
    produce_in_transactions(cluster.servers, source, [many(0, 60), many(60, 30), many(90, 60)])
    first = kops("replay", "archive", source, "--to", str(folder), "-o", "json").ok()
    assert (first.json["records_added"], "aborted transactions" in first.err) == (120, True)
    as_pinned("kops replay archive", first)
    records, days, types = parquet(folder)
    assert records == cluster.read(source)
    assert all(date.fromisoformat(str(day)) == date(1970, 1, 1) + timedelta(days=number) for day, number in days)
    assert types == {"CreateTime"}

    group, ahead = unique("group"), unique("group")
    some = [record for record in cluster.read(source) if record.partition == 1]
    cluster.commit(group, {(source, 0): 0, (source, 1): some[20].offset})
    produce_in_transactions(cluster.servers, source, [many(200, 40)])
    cluster.commit(ahead, {(source, 0): cluster.ends(source)[0][1]})
    (folder / "records" / "left-by-a-killed-run" / "day=2020-01-01").mkdir(parents=True)
    (folder / "records" / "left-by-a-killed-run" / "day=2020-01-01" / "part-0.parquet").write_bytes(b"half")
    partly = kops("replay", "archive", source, "--to", str(folder), "--range", f"..{some[-1].offset + 5}", "-o", "json").ok().json
    second = kops("replay", "archive", source, "--to", str(folder), "-o", "json").ok().json
    assert 0 < partly["records_added"] < 40
    assert partly["records_added"] + second["records_added"] == 40
    assert parquet(folder)[0] == cluster.read(source)
    assert second["groups"] == {
        group: {"0": 0, "1": some[20].offset},
        ahead: {"0": cluster.ends(source)[0][1]},
    }
    before = (folder / "manifest.json").read_text()
    third = kops("replay", "archive", source, "--to", str(folder)).ok()
    assert ("nothing is new" in third.err, json.loads(before)["runs"]) == (True, json.loads((folder / "manifest.json").read_text())["runs"])
    other = kops("replay", "archive", scene.topic("other"), "--to", str(folder))
    assert (other.code, f"the archive is of {source}" in other.err) == (5, True)

    target = f"{scene.prefix}-target"
    hold_back(monkeypatch, cluster.servers, target)
    moved = ("--groups", f"{group}*", "--groups", ahead)
    done = as_pinned("kops replay restore", kops("replay", "restore", folder, "--to", target, *moved, "--yes", "-o", "json").ok())
    assert scene.read(target) == scene.read(source)
    assert sum(item["value"]["in_target"]["records"] for item in done["items"] if isinstance(item.get("value"), dict)) == 160
    for name, partition in ((group, 0), (group, 1), (ahead, 0)):
        committed = cluster.committed(name)
        left = [
            [
                record.value
                for record in cluster.read(topic)
                if record.partition == partition and record.offset >= committed[topic, partition]
            ]
            for topic in (source, target)
        ]
        assert left[0] == left[1]
    settings = kops("topics", "describe", target, "-o", "json").ok().out
    assert "2000000" in settings
    back = kops("undo", "last", "--yes", "--confirm", target)
    assert (back.code, scene.read(target)) == (0, [])

    path = next((folder / "records").rglob("*.parquet"))
    path.unlink()
    damaged = kops("replay", "restore", str(folder), "--to", target, "--yes")
    assert (damaged.code, "do not hold what the manifest says" in damaged.err, scene.read(target)) == (5, True, [])


def test_by_the_hour_with_a_gap_into_a_topic_with_times_of_appending(scene, kops, tmp_path, monkeypatch):
    cluster, source, folder = scene.cluster, scene.topic("source"), tmp_path / "archive"
    cluster.produce(source, many(0, 20))
    on_disk, plain = set(), place.sync

    def sync(path):
        plain(path)
        if not (folder / "manifest.json").exists():
            on_disk.add(path)

    for module in (place, durable):
        monkeypatch.setattr(module, "sync", sync)
    kops("replay", "archive", source, "--to", folder, "--by", "hour").ok()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.rglob("*") if file.is_file()} == {0o600}
    assert on_disk >= {folder.parent, folder, folder / "records", *(folder / "records").rglob("*")}  # before a manifest named them
    assert all(path.parent.name.startswith("hour=") for path in (folder / "records").rglob("*.parquet"))
    cluster.produce(source, many(20, 20))
    kops("topics", "truncate", f"{source}:0", "--to", "15", "--confirm", source).ok()
    refused = kops("replay", "archive", source, "--to", folder)
    assert (refused.code, "5 offsets would be missing" in refused.err) == (5, True)
    done = kops("replay", "archive", source, "--to", folder, "--accept-gap", "-o", "json").ok().json
    assert [(one["records"], one["gaps"]) for one in done["partitions"]] == [(15, [{"start": 10, "end": 15}]), (20, [])]
    target = scene.topic("target", message_timestamp_type="LogAppendTime")
    refused = kops("replay", "restore", folder, "--to", target, "--yes")
    assert (refused.code, "LogAppendTime" in refused.err) == (5, True)
    kops("replay", "restore", folder, "--to", target, "--rate", "1000", "--accept-new-timestamps", "--yes").ok()
    sent = [[r for r in many(0, 40) if r.partition == number] for number in (0, 1)]
    expected = [*sent[0][:10], *sent[0][15:], *sent[1]]
    assert [(r.partition, r.key, r.value, r.headers) for r in scene.read(target)] == [
        (r.partition, r.key, r.value, r.headers) for r in expected
    ]
