"""What the acceptance tests of the examples share: the broker, one JVM for all applications, and copies with names of their own."""

import os
import sys
import uuid

import pytest

from support.examples import EXAMPLES, Copy, Host, class_directories
from support.streams_apps import Cluster

# Where reducers of examples are: Spark's Python workers import what kops could when its one session began, so before any test.
sys.path.append(str(EXAMPLES / "inventory"))


@pytest.fixture(scope="session")
def cluster(broker):
    """The shared broker, through plain client calls."""
    return Cluster(broker.bootstrap_servers)


@pytest.fixture(scope="session")
def host(kafka_jar_files, tmp_path_factory):
    """The JVM that runs the applications."""
    with Host(class_directories(os.environ), tmp_path_factory.mktemp("host") / "host.log") as running:
        yield running


@pytest.fixture
def copies(host, cluster, run_kops, tmp_path_factory):
    """Make copies of an example: ``copies("word-count", "WordCountApplication", inputs=[...], outputs=[...])``; they are deleted."""
    made = []

    def make(example, main_class, count=3, kind=Copy, **options):
        several = []
        for number in range(count):
            prefix = f"{example}-{uuid.uuid4().hex[:6]}-{number}-"
            several.append(kind(host, cluster, run_kops, example, main_class, prefix, tmp_path_factory.mktemp(example), **options))
        made.extend(several)
        for copy in several:
            copy.create_topics()
        return several

    yield make
    host.stop_all()
    for copy in made:
        cluster.delete_all(cluster.topics(copy.prefix))
