"""What is said of requests that the brokers do not know."""

import pytest
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import ListTransactionsRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import OffsetFetchRequest

from kops.core.errors import ExitCode
from kops.gateways.kafka.releases import too_old
from kops.gateways.kafka.translate import translate


@pytest.mark.parametrize(
    ("request_", "brokers", "since"),
    [(ListTransactionsRequest, {}, "3.0"), (OffsetFetchRequest(min_version=7, max_version=8), {9: (0, 5)}, "2.5")],
)
def test_it_names_the_version_that_is_needed_and_the_one_that_is_there(request_, brokers, since):
    with pytest.raises(IncompatibleBrokerVersion) as raised:
        BrokerVersionData(api_versions=brokers).api_version(request_)
    error = too_old("list the transactions", raised.value, "2.8")
    assert error.message == f"cannot list the transactions: this needs Kafka {since}, and the brokers speak the protocol of 2.8"
    assert (error.exit_code, error.details["kafka_error"]) == (ExitCode.REFUSED, "UNSUPPORTED_VERSION")


def test_librdkafka_says_the_same():
    from confluent_kafka import KafkaError

    assert translate(KafkaError(KafkaError._UNSUPPORTED_FEATURE), "describe the group").exit_code == ExitCode.REFUSED
