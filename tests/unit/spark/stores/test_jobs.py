"""Which way a store is computed, and why."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.statefile import parse_state_file
from kops.spark.columns.whole_partitions import FallBack
from kops.spark.job import Job, ReadCounts
from kops.spark.reading.ranges import SPLIT_RECORDS, TopicRange
from kops.spark.reading.source import KafkaSource
from kops.spark.stores import jobs
from kops.spark.stores.jobs import reason_for_sql, stage_difference

STORES = {
    "plain": {"aggregate": {"count": True}},
    "filtered": {"aggregate": {"count": True}, "where": "value > 0"},
    "double": {"from": {"topic": "in", "key": "string", "value": "double"}, "aggregate": {"sum": "value", "as": "double"}},
    "session": {"type": "session", "window": {"gap": "1s", "grace": "0s", "retention": "1h"}, "aggregate": {"count": True}},
    "window": {"type": "window", "window": {"size": "1s", "grace": "0s", "retention": "1h"}, "aggregate": {"count": True}},
}


def kafka(master="local[2]"):
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda _: master))
    return KafkaSource(session, {}, SimpleNamespace(session=session))


def job(name, records=10, **more):
    body = {"type": "key-value", "from": {"topic": "in", "key": "string", "value": "long"}, **STORES[name]}
    file = parse_state_file("state.yaml", {"application": "a", "streams": {"version": "4.1"}, "stores": {name: body}})
    return Job(file, file.stores[0], TopicRange("in", {0: (0, records)}), TopicRange("log", {0: (0, 0)}), 1, **more)


@pytest.mark.parametrize("name", ["plain", "window"])
def test_tasks_compute_what_needs_no_expression(name):
    assert reason_for_sql(kafka(), job(name), "/stage") is None


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("filtered", {}, "expressions"),
        ("double", {}, "order of additions"),
        ("session", {}, "record by record"),
        ("window", {"records": 0}, "nothing to read"),
        ("plain", {"records": SPLIT_RECORDS + 1}, "4,000,001 records"),
        ("plain", {"base": "/snapshot"}, "continues from a snapshot"),
        ("plain", {"held": "/snapshot"}, "stands for its changelog"),
        ("plain", {"others": (TopicRange("more", {}),)}, "several topics"),
    ],
)
def test_spark_computes_the_others_and_says_why(name, more, why):
    assert why in reason_for_sql(kafka(), job(name, **more), "/stage")


def test_spark_computes_where_tasks_run_elsewhere():
    assert "run on this machine" in reason_for_sql(kafka("spark://host:7077"), job("plain"), "/stage")
    assert "cannot be read" in reason_for_sql(replace(kafka(), batches=None), job("plain"), "/stage")
    archived = replace(kafka(), archives={"in": None})
    assert "archive" in reason_for_sql(archived, job("plain"), "/stage")


@pytest.fixture
def ways(monkeypatch):
    """Let tasks leave every store to Spark; return what Spark then computed, and what it is to find in what tasks reduced."""
    tried, found = [], {"left": FallBack.LARGE, "unfit": 0}

    def computed(_kafka, _job, _path, view):
        tried.append(view)
        return ReadCounts(10, {}, 1, 0, void=found["unfit"] if view == "reduced" else 0)

    monkeypatch.setattr(jobs, "stage_whole_partitions", lambda *_: found["left"])
    monkeypatch.setattr(jobs, "partial_aggregates_view", lambda *_: "reduced")
    monkeypatch.setattr(jobs, "VIEWS", dict.fromkeys(jobs.VIEWS, lambda *_: "records"))
    monkeypatch.setattr(jobs, "_in_sql", computed)
    return tried, found


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("plain", {}, ["reduced"]),
        ("plain", {"unfit": 1}, ["reduced", "records"]),
        ("plain", {"left": FallBack.UNFIT}, ["records"]),
        ("filtered", {}, ["records"]),
    ],
    ids=["large", "unfit-after-all", "unfit", "expression"],
)
def test_spark_reads_what_tasks_reduced_unless_a_record_is_unfit(ways, name, found, expected):
    tried, made = ways
    made.update(found)
    assert not stage_difference(kafka(), job(name), "/stage").void
    assert tried == expected


@pytest.mark.parametrize("more", [{"base": "/snapshot"}, {"held": "/snapshot"}], ids=["continued", "compared"])
def test_only_a_store_that_continues_from_a_snapshot_needs_the_records(ways, more):
    stage_difference(kafka(), job("plain", **more), "/stage")
    assert ways[0] == (["records"] if "base" in more else ["reduced"])
