"""Topics with remote storage, beside what Apache's ``kafka-get-offsets`` says of them."""

import os

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kops.core.errors import MissingRequirement
from support.apache_tools import ApacheTools
from support.kafka import broker_jars
from support.patience import HANG_SECONDS
from support.services import cache
from support.streams_apps import wait_for
from support.tiered import TOPIC, storage_jar, tiered_kafka

pytestmark = pytest.mark.broker

SPECS = ("max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload")


@pytest.fixture(params=["4.1.1", pytest.param("4.3.1", marks=pytest.mark.long)])
def tiered(request, jdk, tmp_path):
    """A Kafka with the topic ``tiered``, where all but the last of six records of partition 0 are in remote storage only."""
    try:
        jars = [*broker_jars(request.param), storage_jar(cache(), request.param)]
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    with tiered_kafka(tmp_path / "kafka", request.param, jars, jdk) as own:
        admin = AdminClient(own.client)
        made = admin.create_topics([NewTopic("tiered", 2, 1, config=TOPIC), NewTopic("plain", 1, 1)])
        for each in made.values():
            each.result(HANG_SECONDS)
        producer = Producer(own.client)
        for value in (b"plain", *(os.urandom(600_000) for _ in range(6))):  # two do not fit into a segment
            producer.produce("plain" if len(value) < 9 else "tiered", value, partition=0)
            assert producer.flush(HANG_SECONDS) == 0
        yield request.param, own


def test_ends_are_those_of_apache_and_a_reset_says_what_it_fetches(tiered, run_kops):
    version, own = tiered

    def kops(*words):
        return run_kops(*words, "-B", own.bootstrap_servers)

    with ApacheTools(own.bootstrap_servers) as apache:
        wait_for("the segments to be moved", lambda: apache.offsets("tiered", "earliest-local")[0] == 5)
        known = SPECS if version != "4.1.1" else SPECS[:3]
        theirs = {name: {topic: apache.offsets(topic, name) for topic in ("tiered", "plain")} for name in known}
    for name in known:
        rows = kops("topics", "offsets", "tiered", "plain", "--at", name, "-o", "json").ok().json
        found = {(row["topic"], row["partition"]): row["offset_at"] for row in rows if row["offset_at"] is not None}
        assert found == {(topic, number): offset for topic, some in theirs[name].items() for number, offset in some.items()}
    if version == "4.1.1":
        refused = kops("topics", "offsets", "tiered", "--at", SPECS[3])
        assert refused.code == 5
        assert "needs Kafka 4.2, and the brokers speak the protocol of 4.1" in refused.err
    ends = {(row["topic"], row["partition"]): (row["earliest_local_offset"], row["latest_tiered_offset"]) for row in rows}
    assert ends == {("tiered", 0): (5, 4), ("tiered", 1): (0, None), ("plain", 0): (None, None)}
    body = kops("topics", "describe", "tiered", "-o", "json").ok().json[0]
    assert [(row["earliest_local_offset"], row["latest_tiered_offset"]) for row in body["partitions"]] == [(5, 4), (0, None)]
    assert "TIERED UP TO" in kops("topics", "offsets", "tiered", "plain").ok().out
    assert "TIERED UP TO" not in kops("topics", "offsets", "plain").ok().out
    dry = ("--new-group", "--dry-run", "-o", "json")
    reset = kops("offsets", "reset", "g", "--topic", "tiered", "--topic", "plain", "--to-earliest", *dry)
    assert "fetches 5 offsets from remote storage: the local logs no longer have them (tiered:0)" in reset.ok().json["notes"]
    seek = kops("offsets", "seek", "g", "tiered:0=5", *dry).ok().json
    assert seek["notes"] == []
