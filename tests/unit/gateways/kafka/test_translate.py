"""Kafka's errors in kops' words: the exit code shows what to do."""

import pytest
from confluent_kafka import KafkaError
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import ListTransactionsRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import OffsetFetchRequest

from kops.core import errors
from kops.core.errors import ExitCode
from kops.gateways.kafka.translate import is_authentication, is_unreachable, request_in, too_old, translate

CASES = {
    "_ALL_BROKERS_DOWN": errors.Unreachable,
    "_RESOLVE": errors.Unreachable,
    "_TRANSPORT": errors.Unreachable,
    "_AUTHENTICATION": errors.AuthenticationFailed,
    "_SSL": errors.AuthenticationFailed,
    "SASL_AUTHENTICATION_FAILED": errors.AuthenticationFailed,
    "_TIMED_OUT": errors.TimedOut,
    "REQUEST_TIMED_OUT": errors.TimedOut,
    "UNKNOWN_TOPIC_OR_PART": errors.NotFound,
    "GROUP_ID_NOT_FOUND": errors.NotFound,
    "TOPIC_AUTHORIZATION_FAILED": errors.AuthorizationFailed,
    "CLUSTER_AUTHORIZATION_FAILED": errors.AuthorizationFailed,
    "NON_EMPTY_GROUP": errors.GroupActive,
    "UNKNOWN_MEMBER_ID": errors.GroupActive,
    "INVALID_CONFIG": errors.UsageProblem,
    "INVALID_REPLICATION_FACTOR": errors.UsageProblem,
    "TOPIC_EXCEPTION": errors.UsageProblem,
    "POLICY_VIOLATION": errors.UsageProblem,
    "_INVALID_ARG": errors.ConfigError,
    "TOPIC_ALREADY_EXISTS": errors.OperationFailed,
    "NOT_ENOUGH_REPLICAS": errors.OperationFailed,
}


@pytest.mark.parametrize("name", CASES)
def test_class_and_facts(name):
    error = translate(KafkaError(getattr(KafkaError, name), "because"), "delete topic orders", ("a:1", "b:2"))
    assert type(error) is CASES[name]
    refused = {"needs": "DELETE on topic orders"} if name == "TOPIC_AUTHORIZATION_FAILED" else {}
    assert error.details == {"kafka_error": name, **refused}
    if name in ("_ALL_BROKERS_DOWN", "_SSL"):
        assert "a:1,b:2" in error.message
    else:
        assert error.message


def test_the_brokers_reason_is_kept():
    error = translate(KafkaError(KafkaError.INVALID_CONFIG, "Unknown topic config name: foo"), "create topic orders")
    assert error.message == "could not create topic orders: Unknown topic config name: foo"


def test_what_ends_all_hope():
    assert is_unreachable(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert not is_unreachable(KafkaError(KafkaError._TRANSPORT))  # one broker of several
    assert is_authentication(KafkaError(KafkaError._AUTHENTICATION))


@pytest.mark.parametrize(
    ("request_", "brokers", "since"),
    [(ListTransactionsRequest, {}, "3.0"), (OffsetFetchRequest(min_version=7, max_version=8), {9: (0, 5)}, "2.5")],
)
def test_it_names_the_version_that_is_needed_and_the_one_that_is_there(request_, brokers, since):
    with pytest.raises(IncompatibleBrokerVersion) as raised:
        BrokerVersionData(api_versions=brokers).api_version(request_)
    error = too_old("list the transactions", request_in(raised.value), "2.8")
    assert error.message == f"cannot list the transactions: this needs Kafka {since}, and the brokers speak the protocol of 2.8"
    assert (error.exit_code, error.details["kafka_error"]) == (ExitCode.REFUSED, "UNSUPPORTED_VERSION")


def test_librdkafka_says_the_same():
    from confluent_kafka import KafkaError

    assert translate(KafkaError(KafkaError._UNSUPPORTED_FEATURE), "describe the group").exit_code == ExitCode.REFUSED
