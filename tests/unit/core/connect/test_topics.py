"""Which topics a connector uses."""

import pytest

from kops.core.connect.models import Connector
from kops.core.connect.topics import elsewhere, used_topics


@pytest.mark.parametrize(
    "plugin", ["FileStreamSource", "FileStreamSourceConnector", "org.apache.kafka.connect.file.FileStreamSourceConnector"]
)
def test_a_plugin_is_known_by_each_name_that_connect_takes_for_it(plugin):
    connector = Connector("lines", "RUNNING", "source", "w:1", config={"connector.class": plugin, "topic": "lines"})
    assert used_topics(connector).writes == ("lines",)


def test_where_only_the_plugin_knows():
    connector = Connector("own", "RUNNING", "source", "w:1", config={"connector.class": "MyFileStreamSource", "topic": "lines"})
    assert used_topics(connector).writes is None


@pytest.mark.parametrize("setting", ["consumer.override.bootstrap.servers", "producer.override.bootstrap.servers"])
def test_topics_may_be_of_another_cluster(setting):
    assert elsewhere({"topics": "a", setting: "other:9092"}) == setting
    assert elsewhere({"topics": "a", "consumer.override.group.id": "g"}) is None
