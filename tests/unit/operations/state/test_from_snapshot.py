"""A snapshot as the start of a computation: which ones are refused before anything is read."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.errors import ConfigError, Refused, UsageProblem
from kops.core.models import Bounds, CommittedOffset, NewTopic, Partition, Topic, TopicPartition
from kops.core.statefile import parse_state_file
from kops.operations.state.facts import StoreFacts
from kops.operations.state.from_snapshot import open_base, refuse_older
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.input_starts import starts_after_snapshot
from kops.operations.state.snapshot import FILE, Manifest, SnapshotStore, manifest_json

ORDERS = TopicPartition("orders", 0)
MANIFEST = Manifest(
    application="a",
    guarantee="at_least_once",
    cluster_id="here",
    taken="2026-11-20T00:00:00.000Z",
    kops="1",
    stores=(SnapshotStore("s", "key-value", NewTopic("a-s-changelog", 2, 1), {}),),
    repartitions=(),
    inputs={"orders": 2},
    committed={ORDERS: CommittedOffset(30)},
    input_ids={"orders": "id"},
)


def state_file(application="a", **fields):
    store = {"from": {"topic": "orders", "key": "string", "value": "long"}, "aggregate": {"count": True}, **fields}
    said = {name: value for name, value in store.items() if value is not None}
    return parse_state_file("f", {"application": application, "streams": {"version": "4.3"}, "stores": {"s": said}})


@pytest.fixture
def opened(tmp_path):
    def run_it(manifest=MANIFEST, file=None, partitions=2, topic_id="id"):
        (tmp_path / FILE).write_text(json.dumps(manifest_json(manifest)), encoding="utf-8")
        parts = tuple(Partition(number, 1, (1,), (1,)) for number in range(partitions))
        there = {"orders": Topic("orders", parts, topic_id), "a-s-changelog": Topic("a-s-changelog", parts[:2], "other")}
        topics = SimpleNamespace(existing=lambda names: {name: there[name] for name in names if name in there})
        kafka = SimpleNamespace(cluster=lambda: SimpleNamespace(cluster_id="here"), topics=topics)
        return open_base(SimpleNamespace(kafka=kafka), file or state_file(), str(tmp_path))

    return run_it


def test_a_snapshot_of_this_application(opened):
    base = opened()
    assert base.offsets == {ORDERS: 30}
    assert "2026-11-20" in base.origin
    assert base.path(state_file().stores[0]).endswith("stores/s")
    starts = starts_after_snapshot([ORDERS, TopicPartition("orders", 1)], base.offsets)
    assert (starts.of("orders"), starts.findings) == ({0: 30, 1: 0}, ())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"application": "b"}, "of the application b, and this is a"),
        ({"cluster_id": "there"}, "of the cluster there"),
        ({"guarantee": "exactly_once_v2"}, "of the guarantee exactly_once_v2"),
        (
            {"stores": (SnapshotStore("t", "key-value", NewTopic("a-t-changelog", 2, 1), {}),)},
            "has no store of the changelog a-s-changelog",
        ),
        ({"inputs": {"orders": 3}}, "orders with 3 partitions, and it has 2"),
        ({"input_ids": {"orders": "older"}}, "deleted and recreated"),
    ],
)
def test_a_snapshot_of_something_else(opened, changes, said):
    with pytest.raises(UsageProblem, match=said):
        opened(replace(MANIFEST, **changes))


def test_a_snapshot_of_an_older_kops_knows_no_ids(opened):
    assert opened(replace(MANIFEST, input_ids={})) is not None


WINDOW = {"type": "window", "window": {"size": "1m", "grace": "0s", "retention": "1d"}}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (state_file(**WINDOW), "has windows"),
        (state_file(type="versioned", history_retention="1h", aggregate=None), "tables or versions"),
    ],
)
def test_stores_that_cannot_start_from_one(opened, file, said):
    with pytest.raises(Refused, match=said):
        opened(file=file)


def test_no_snapshot(tmp_path):
    assert open_base(SimpleNamespace(), state_file(), None) is None
    with pytest.raises(ConfigError, match="is not a snapshot"):
        open_base(SimpleNamespace(), state_file(), str(tmp_path))


def test_a_snapshot_that_has_more_than_counts(opened):
    base = opened()
    facts = [StoreFacts(state_file().stores[0], {ORDERS: Bounds(0, 50)}, {}, {})]
    refuse_older(base, facts, InputOffsets({ORDERS: 30}, {}))
    with pytest.raises(Refused, match="has orders:0 up to offset 30, and only what lies before 29 counts"):
        refuse_older(base, facts, InputOffsets({ORDERS: 29}, {}))
