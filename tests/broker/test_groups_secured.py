"""Three brokers, SCRAM over TLS: the second client is configured as the first is, and asks every coordinator; all stop and come back."""

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kops.config.connection import Secret
from kops.core.errors import AuthenticationFailed, ConfigError, KopsError, Unreachable
from kops.core.models import CommittedOffset, TopicPartition
from kops.gateways.kafka import Kafka
from kops.sandbox import cluster
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

PARTITION = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def secured(own_brokers):
    own = own_brokers(brokers=3, security="sasl-ssl")
    admin = AdminClient(own.client)
    admin.create_topics([NewTopic("orders", 1, 3)], operation_timeout=HANG_SECONDS)["orders"].result(HANG_SECONDS)
    return own


def test_groups_of_every_coordinator_are_read(secured):
    groups = Kafka(secured.connection).groups
    names = [f"g{number}" for number in range(12)]
    for name in names:  # a cluster that has just started is still electing its coordinators
        wait_for(
            f"a coordinator of {name}",
            lambda name=name: groups.commit(name, {PARTITION: CommittedOffset(0, f"of {name}")}) == {PARTITION: None},
        )
    assert {name for name in groups.ids() if name in names} == set(names)
    described = groups.describe(names)
    assert len({group.coordinator for group in described.values()}) > 1
    assert groups.committed(names) == {name: {PARTITION: CommittedOffset(0, f"of {name}")} for name in names}
    assert groups.delete_offsets("g0", [PARTITION]) == {PARTITION: None}
    assert groups.committed(["g0"])["g0"] == {}
    assert set(groups.delete(names[1:]).values()) == {None}


def test_a_certificate_authority_may_be_given_as_text(secured):
    """``ssl.truststore.certificates`` of Java's properties: every client of kops trusts it."""
    text = Path(secured.connection.ca_file).read_text(encoding="utf-8")
    kafka = Kafka(replace(secured.connection, ca_file=None, client={"ssl.ca.pem": text}))
    assert len(kafka.cluster().brokers) == 3
    commit = {PARTITION: CommittedOffset(0, "some")}
    wait_for("a coordinator", lambda: kafka.groups.commit("by-text", commit) == {PARTITION: None})
    assert kafka.groups.committed(["by-text"])["by-text"] == {PARTITION: CommittedOffset(0, "some")}


def test_groups_are_read_without_kafka_python(secured, monkeypatch):
    """A PKCS12 key store cannot be given to kafka-python: groups are listed all the same, and metadata is not known."""
    groups = Kafka(secured.connection).groups
    groups.commit("plain", {PARTITION: CommittedOffset(0, "some")})
    for module in ("groups.groups", "groups.committed", "admin"):
        monkeypatch.setattr(f"kops.gateways.kafka.{module}.can_express", lambda connection: False)
    groups = Kafka(secured.connection).groups
    assert "plain" in groups.ids()
    assert groups.describe(["plain"])["plain"].state == "EMPTY"
    assert groups.committed(["plain"])["plain"] == {PARTITION: CommittedOffset(0, None)}
    with pytest.raises(ConfigError, match="PKCS12"):
        groups.commit("plain", {PARTITION: CommittedOffset(0, "other")})
    assert groups.commit("plain", {PARTITION: CommittedOffset(0)}) == {PARTITION: None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"password": Secret("the test", lambda: "wrong"), "timeout": 60.0}, AuthenticationFailed),
        ({"ca_file": None, "timeout": 5.0}, KopsError),
        ({"bootstrap_servers": ("127.0.0.1:1",), "timeout": 20.0}, Unreachable),
    ],
    ids=["password", "authority", "address"],
)
def test_a_wrong_connection_is_reported_by_its_cause(secured, changes, expected):
    connection = replace(secured.connection, **changes)
    groups = Kafka(connection).groups
    for ask in (groups.listed, lambda: groups.commit("g", {PARTITION: CommittedOffset(0, "some")})):
        with pytest.raises(expected) as problem:
            ask()
        assert problem.value.exit_code in (3, 4)


def test_stopping_all_of_them_ends_every_process_and_they_come_back(secured, run_kops):
    assert AdminClient(secured.client).list_topics(timeout=HANG_SECONDS).brokers.keys() == {1, 2, 3}
    reached = ("--command-config", secured.sandbox.directory / "client.properties", "-B", secured.bootstrap_servers, "-o", "json")
    body = run_kops("cluster", "describe", *reached).ok().json
    assert [len(body[key]) for key in ("brokers", "not_known")] == [3, 0]
    assert len(body["quorum"]["voters"]) == 3
    assert all(row["log_dirs"] for row in run_kops("cluster", "brokers", *reached).ok().json)
    assert run_kops("diagnose", *reached).json["not_checked"] == []
    assert [broker.state for broker in cluster.status(secured.sandbox).of("broker")] == ["running"] * 3
    cluster.down(secured.sandbox)
    assert cluster.status(secured.sandbox).state == "stopped"
    secured.up()
    assert AdminClient(secured.client).list_topics(timeout=HANG_SECONDS).brokers.keys() == {1, 2, 3}
