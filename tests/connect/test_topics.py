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
    assert (
        rows[source, "topic"]["message"]
        == f"{absent} does not exist, and neither the brokers nor Connect create it: nothing can be written"
    )
    assert rows[sink, DLQ]["hint"].startswith(f"create it: `kops topics create {dead} --replication-factor 1`, or set ")
    done = kops("apply", file, "--yes")
    assert f"{sink}: topics: {absent} does not exist: nothing is read from there" in done.err
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
    assert f"not every topic of {reference['name']} is known: topics has a reference" in kops("validate", file).err


def test_status_names_what_a_running_connector_lacks(kops, connectors, topic, unique, tmp_path):
    there, absent = topic("there", partitions=1), unique("absent")
    writing = connectors(unique("source"), {"connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": absent})
    reading = connectors(unique("sink"), {"connector.class": FILE_SINK, "file": str(tmp_path / "out"), "topics": f"{there},{absent}"})
    fine = connectors(unique("fine"), {"connector.class": FILE_SINK, "file": str(tmp_path / "out2"), "topics": there})
    bodies = {body["name"]: body for body in kops("status", writing, reading, fine, "-o", "json").ok().json}
    assert {body["state"] for body in bodies.values()} == {"RUNNING"}
    assert {name: [lack["topics"] for lack in body["lacks"]] for name, body in bodies.items()} == {
        writing: [[absent]],
        reading: [[absent]],
        fine: [],
    }
    findings = kops.other("diagnose", writing, reading, "--sample", "0s", "-o", "json").json["findings"]
    reported = {finding["subject"]: finding["summary"] for finding in findings if finding["check"] == "connector_topic_missing"}
    assert reported == {f"connector {name}": bodies[name]["lacks"][0]["message"] for name in (writing, reading)}
    shown = kops("status", writing)
    assert f"{absent} does not exist, and neither the brokers nor Connect create it" in shown.out
    assert f"{writing}: create it: `kops topics create {absent} -B " in shown.err
    assert f"{absent} does not exist" in kops("status", reading, "--watch", "--count", "1").ok().out
    kops("pause", reading, "--yes").ok()
    assert kops("status", reading, "-o", "json").json[0]["lacks"] is None
    without = kops.connect_only("status", writing, "-o", "json")
    assert (without.code, without.json[0]["lacks"]) == (0, None)
    assert "topics exist is not known: no brokers are configured" in without.err


def test_a_topic_that_a_transform_leaves_is_not_missed(kops, connectors, topic, unique, tmp_path, until):
    named, written, read = unique("named"), topic("written", partitions=1), tmp_path / "in.txt"
    read.write_text("one\n")
    transform = {
        "transforms": "elsewhere",
        "transforms.elsewhere.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.elsewhere.regex": ".*",
        "transforms.elsewhere.replacement": written,
    }
    name = connectors(unique("routed"), {"connector.class": FILE_SOURCE, "file": str(read), "topic": named, **transform})
    until("the line to be written", lambda: "one" in kops.other("records", "consume", written, "start..").ok().out)
    found = kops("status", name, "-o", "json").ok()
    assert found.json[0]["lacks"] is None
    assert f"not every topic of {name} is known: its transform elsewhere may send records to other topics" in found.err
    until("Connect to report it", lambda: kops("describe", name, "-o", "json").json[0]["topics"] == [written])
    assert kops.other("diagnose", name, "--sample", "0s", "-o", "json").json["findings"] == []


@pytest.fixture
def cluster(broker):
    from support.streams_apps import Cluster

    return Cluster(broker.bootstrap_servers)


@pytest.fixture
def lacking(connectors, topic, unique, tmp_path, cluster):
    """A file of a source and a sink whose topics do not exist; connectors and topics are gone afterwards."""

    class Lacking:
        source, sink, file = unique("source"), unique("sink"), tmp_path / "connectors.json"
        topics = written, read, dead = unique("written"), unique("read"), unique("dead")
        text = tmp_path / "in.txt"

        def write(self, *, replicas="1", **more):
            reading = {"name": self.source, "connector.class": FILE_SOURCE, "file": str(self.text), "topic": self.written, **more}
            writing = {"name": self.sink, "connector.class": FILE_SINK, "file": str(tmp_path / "out"), "topics": self.read, DLQ: self.dead}
            self.file.write_text(json.dumps([reading, {**writing, f"{DLQ.removesuffix('name')}replication.factor": replicas}]))

        def there(self):
            return sorted(name for name in self.topics if cluster.topics(name))

    made = Lacking()
    connectors.made.extend([made.source, made.sink])
    made.text.write_text("")
    made.write()
    yield made
    if made.there():
        cluster.delete_all(made.there())


def test_topics_are_created_in_the_same_plan_and_undone_with_it(kops, connect_workers, lacking, until):
    plan = kops("apply", lacking.file, "--create-topics", "--dry-run", "-o", "json").json
    items = {item["target"]: item for item in plan["items"]}
    assert list(items) == [*(f"topic {name}" for name in lacking.topics), lacking.source, lacking.sink]
    assert items[f"topic {lacking.dead}"]["after"]["replication_factor"] == 1
    assert "replication factor: errors.deadletterqueue.topic.replication.factor" in items[f"topic {lacking.dead}"]["reason"]
    assert items[f"topic {lacking.read}"]["reason"] == f"topics of {lacking.sink}; partitions and replication factor: the brokers' default"
    assert not any("does not exist" in warning for warning in plan["warnings"])
    assert lacking.there() == []
    kops("apply", lacking.file, "--create-topics", "--yes").ok()
    assert lacking.there() == sorted(lacking.topics)
    until("each worker to know it", lambda: connect_workers.states(lacking.sink) == ["RUNNING", "RUNNING"])
    again = kops("apply", lacking.file, "--create-topics", "--yes")
    assert (again.code, "every connector is up to date" in again.err + again.out) == (0, True)
    kops.other("undo", "last", "--confirm", "2 connectors").ok()
    assert lacking.there() == []
    until("each worker to forget it", lambda: connect_workers.states(lacking.sink) == [])
    kops.other("undo", "last", "--yes").ok()
    assert lacking.there() == sorted(lacking.topics)
    until("it to run again", lambda: connect_workers.states(lacking.source) == ["RUNNING", "RUNNING"])


def test_an_undo_does_not_lose_what_was_written_since(kops, lacking, cluster, until):
    lacking.text.write_text("one\n")
    kops("apply", lacking.file, "--create-topics", "--yes").ok()
    until("the line to be written", lambda: len(cluster.read(lacking.written)) == 1)
    refused = kops.other("undo", "last", "--confirm", "2 connectors")
    assert (refused.code, f"{lacking.written} has 1 record" in refused.err) == (5, True)
    assert lacking.there() == sorted(lacking.topics)
    kops.other("undo", "last", "--accept-loss", "--confirm", "2 connectors").ok()
    assert lacking.there() == []


def test_what_is_left_to_connect_and_what_cannot_be_created(kops, lacking):
    lacking.write(**{"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "5"})
    plan = kops("apply", lacking.file, "--create-topics", "--dry-run", "-o", "json").json
    assert [item["target"] for item in plan["items"]][:2] == [f"topic {lacking.read}", f"topic {lacking.dead}"]
    assert f"{lacking.written}: created when a source writes there, by Connect or the brokers" in plan["notes"]
    lacking.write(replicas="3")
    refused = kops("apply", lacking.file, "--create-topics", "--dry-run")
    assert (refused.code, f"{lacking.dead} cannot be created with 3 replicas on 1 broker" in refused.err) == (2, True)
    assert "set errors.deadletterqueue.topic.replication.factor=1" in refused.err
    without = kops.connect_only("apply", lacking.file, "--create-topics", "--dry-run")
    assert (without.code, "no brokers are configured" in without.err) == (2, True)
    assert lacking.there() == []


def test_a_connector_that_stays_as_it_is_gets_its_topics(kops, lacking):
    kops("apply", lacking.file, "--yes", "--create-topics").ok()
    kops.other("topics", "delete", lacking.read, "--confirm", lacking.read).ok()
    plan = kops("apply", lacking.file, "--create-topics", "--dry-run", "-o", "json").json
    assert [item["target"] for item in plan["items"] if item["action"] != "none"] == [f"topic {lacking.read}"]
    kops("apply", lacking.file, "--create-topics", "--yes").ok()
    assert lacking.there() == sorted(lacking.topics)
