from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.config.connection import Connection, Oauth, Secret
from kops.core.errors import AuthorizationFailed, BrokersTooOld, ConfigError, GroupActive, NotFound, OperationFailed, TimedOut
from kops.gateways.kafka.admin import Wire, can_express, kafka_python_settings
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.answers import kafka_words, listed_group
from kops.gateways.kafka.translate import translate_kafka_python

BROKERS = ("one:9092", "two:9092")


def test_plaintext():
    assert kafka_python_settings(Connection(BROKERS, timeout=2.5)) == {
        "bootstrap_servers": ["one:9092", "two:9092"],
        "client_id": "kops",
        "security_protocol": "PLAINTEXT",
        "request_timeout_ms": 2500,
        "bootstrap_timeout_ms": 2500,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords(mechanism):
    password = Secret("the test", lambda: "pass word")
    connection = Connection(BROKERS, security_protocol="SASL_SSL", sasl_mechanism=mechanism, username="me", password=password)
    settings = kafka_python_settings(connection)
    assert (settings["sasl_mechanism"], settings["sasl_plain_username"], settings["sasl_plain_password"]) == (mechanism, "me", "pass word")
    assert settings["ssl_context"].check_hostname
    unchecked = kafka_python_settings(Connection(BROKERS, security_protocol="SSL", verify_hostname=False))
    assert not unchecked["ssl_context"].check_hostname


def test_tokens_come_from_the_command():
    oauth = Oauth(token_command="echo a-token")
    settings = kafka_python_settings(Connection(BROKERS, security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", oauth=oauth))
    assert settings["sasl_oauth_token_provider"].token() == "a-token"


def test_what_the_second_client_cannot_do():
    connection = Connection(BROKERS, security_protocol="SSL", keystore_file="/a/store.p12")
    assert not can_express(connection)
    with pytest.raises(ConfigError):
        kafka_python_settings(connection)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"cannot read /none\.pem"):
        kafka_python_settings(Connection(BROKERS, security_protocol="SSL", ca_file="/none.pem"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("UnknownMemberIdError", GroupActive),
        ("NonEmptyGroupError", GroupActive),
        ("GroupSubscribedToTopicError", GroupActive),
        ("GroupIdNotFoundError", NotFound),
        ("UnknownTopicOrPartitionError", NotFound),
        ("GroupAuthorizationFailedError", AuthorizationFailed),
        ("KafkaTimeoutError", TimedOut),
        ("OffsetMetadataTooLargeError", OperationFailed),
    ],
)
def test_errors(name, kind):
    import kafka.errors

    error = getattr(kafka.errors, name)
    for raised in (error, error("a {brace}")):
        assert type(translate_kafka_python(raised, "commit {x}", BROKERS)) is kind


def test_states_and_types():
    assert kafka_words("PreparingRebalance") == kafka_words("PREPARING_REBALANCING") == "PREPARING_REBALANCE"
    assert [kafka_words(word) for word in ("Stable", "NotReady", "EMPTY", "")] == ["STABLE", "NOT_READY", "EMPTY", "UNKNOWN"]
    old = {"group_id": "g", "protocol_type": "consumer"}
    assert (listed_group(old).type, listed_group(old).state) == ("classic", "UNKNOWN")
    connect = {"group_id": "g", "protocol_type": "connect", "group_state": "Stable", "group_type": "classic"}
    assert (listed_group(connect).type, listed_group(connect).state) == ("connect", "STABLE")


@pytest.mark.parametrize(
    ("request_", "version", "needed"), [("DescribeCluster", 2, "4.0"), ("AddRaftVoter", 0, "3.9"), ("DescribeCluster", 1, "")]
)
def test_what_the_brokers_do_not_know_is_refused_with_both_versions(request_, version, needed):
    versions = SimpleNamespace(api_versions={60: (0, 1)}, broker_version_str="3.7")
    client = Client(Connection(BROKERS))
    client.second = SimpleNamespace(_manager=SimpleNamespace(broker_version_data=versions))
    if not needed:
        Wire(client).require("do it", request_, version)
        return
    with pytest.raises(BrokersTooOld) as refused:
        Wire(client).require("do it", request_, version)
    assert refused.value.message == f"cannot do it: this needs Kafka {needed}, and the brokers speak the protocol of 3.7"
    client.connection = replace(client.connection, security_protocol="SSL", keystore_file="/a/store.p12")
    Wire(client).require("do it", request_, version)  # a client that cannot ask refuses nothing
