"""Topics that connectors need and that do not exist, on brokers that create none."""

import json

import pytest

from support.connect import FILE_SINK, FILE_SOURCE

pytestmark = pytest.mark.broker
DLQ = "errors.deadletterqueue.topic.name"


def test_missing_topics_are_named_before_and_after(kops, connectors, topic, unique, tmp_path, until):
    there, absent, dead, source, sink = topic("there", partitions=1), unique("absent"), unique("dead"), unique("source"), unique("sink")
    connectors.made.extend([source, sink])
    file = tmp_path / "connectors.json"
    reading = {"name": source, "connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": absent}
    writing = {"name": sink, "connector.class": FILE_SINK, "file": str(tmp_path / "out"), "topics": f"{there},{absent}", DLQ: dead}
    file.write_text(json.dumps([reading, writing]))
    rows = {(row["connector"], row["setting"]): row for row in kops("validate", file, "-o", "json").ok().json}
    assert set(rows) == {(source, "topic"), (sink, "topics"), (sink, DLQ)}
    assert f"topic {absent} does not exist" in rows[source, "topic"]["message"]
    assert rows[sink, DLQ]["hint"].startswith(f"create it: kops topics create {dead}, or set ")
    done = kops("apply", file, "--yes")
    assert f"{sink}: topics: topic {absent} does not exist" in done.err
    until("its task to fail, as announced", lambda: kops("status", sink, "-o", "json").json[0]["tasks"][0]["state"] == "FAILED")
    cause = kops("status", sink, "-o", "json").json[0]["tasks"][0]["cause"]
    assert cause.startswith(f"Could not initialize dead letter queue with topic={dead}; InvalidReplicationFactorException: ")


def test_what_is_not_known_is_said(kops, connect_workers, unique, tmp_path, topic):
    file = tmp_path / "connectors.json"
    common = {"connector.class": FILE_SINK, "file": str(tmp_path / "out")}
    there = topic("there", partitions=1)
    regex = {"name": unique("regex"), **common, "topics.regex": f"{unique('never')}.*"}
    file.write_text(json.dumps([{"name": unique("fine"), **common, "topics": there}, regex]))
    found = kops("validate", file, "-o", "json").ok()
    assert [(row["connector"], row["setting"]) for row in found.json] == [(regex["name"], "topics.regex")]
    without = kops.connect_only("validate", file)
    assert (without.code, "topics exist is not known: no brokers are configured" in without.err) == (0, True)
    reference = {"name": unique("reference"), **common, "topics": "${env:HOME}"}
    file.write_text(json.dumps(reference))
    assert f"which topics {reference['name']} will use is not known" in kops("validate", file).err
