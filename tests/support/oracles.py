"""The real Kafka Streams without a broker, one process for the whole run."""

import pytest

from support.streams import Oracle


@pytest.fixture(scope="session")
def oracle():
    """The Kafka Streams that kops is tested with."""
    with Oracle() as running:
        yield running


@pytest.fixture(scope="session")
def older_oracle():
    """The oldest Kafka Streams that kops is tested with."""
    with Oracle("4.1.1") as running:
        yield running
