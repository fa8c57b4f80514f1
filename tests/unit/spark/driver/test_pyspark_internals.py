"""The parts of PySpark and py4j below their documented classes that kops uses: this fails when a release no longer has them."""

import inspect

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext, daemon, java_gateway

from kops.spark.driver.pyspark_internals import CONNECTION_FILE


def test_context_has_its_jvm_and_gateway():
    assert {"_jvm", "_gateway"} <= set(SparkContext.__annotations__)
    made = inspect.getsource(SparkContext._do_init)
    assert "self._jsc = " in made


def test_gateway_makes_arrays():
    assert list(inspect.signature(JavaGateway.new_array).parameters)[:2] == ["self", "java_class"]


def test_driver_writes_its_port_into_the_file_of_the_environment():
    source = inspect.getsource(java_gateway)
    assert CONNECTION_FILE in source
    assert all(name in source for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"))


def test_daemon_of_the_workers_starts_without_arguments():
    assert list(inspect.signature(daemon.manager).parameters) == []
