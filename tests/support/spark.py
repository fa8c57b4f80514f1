"""The Spark session of the tests."""

import os

import pytest

from kops.config.paths import directories
from kops.core.errors import MissingRequirement
from kops.gateways.machine.jars import jars_of, spark_kafka_set


@pytest.fixture(scope="session")
def spark(jdk):
    """The one Spark session of this process, as kops starts it: whatever runs kops in this process finds it running."""
    from kops.spark.driver.session import SparkNeeds, start_session

    cache = directories(os.environ).cache
    try:
        jars = jars_of(spark_kafka_set(), cache)
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    return start_session(SparkNeeds(jars=jars, java=str(jdk.java), archives=cache / "spark")).get()
