"""``examples/connectors``: what a worker has is validated by its plugin, and of what it has not kops says how to get it."""

import pytest
import yaml

from support.examples import EXAMPLES

pytestmark = pytest.mark.broker

FOLDER = EXAMPLES / "connectors"
REMEDIES = {
    "io.aiven.connect.jdbc.JdbcSourceConnector": "the releases of Aiven-Open on GitHub",
    "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector": "kops connect plugins add io.aiven:s3-connector-for-apache-kafka:",
    "io.confluent.connect.hdfs.HdfsSinkConnector": "it is not on Maven Central, Confluent Hub has it",
    "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector": "it is not on Maven Central, Confluent Hub has it",
}


def declared():
    return [one for file in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def test_all_modes_of_the_source_and_all_sinks_are_there():
    modes = {one["mode"] for one in declared() if one["connector.class"].endswith("JdbcSourceConnector")}
    assert modes == {"bulk", "incrementing", "timestamp", "timestamp+incrementing"}
    assert {one["connector.class"] for one in declared()} == set(REMEDIES)
    assert any("table.whitelist" in one for one in declared())
    assert any("table.blacklist" in one for one in declared())


def test_validated_where_the_plugin_is_and_explained_where_not(run_kops, connect_workers, monkeypatch):
    monkeypatch.setenv("KOPS_CONNECT_URLS", ",".join(connect_workers.urls))
    there = {row["class"] for row in run_kops("connect", "plugins", "list", "-o", "json").ok().json}
    found = run_kops("connect", "validate", FOLDER, "-o", "json")
    missing = [one for one in declared() if one["connector.class"] not in there]
    assert found.code == 2 or not missing
    rows = {row["connector"]: row for row in found.json}
    assert set(rows) >= {one["name"] for one in missing}
    assert not [row for row in found.json if row["level"] == "warning"], "a setting that the plugin does not know"
    for one in missing:
        row, plugin = rows[one["name"]], one["connector.class"]
        assert (row["setting"], row["message"]) == ("connector.class", f"no worker has the plugin {plugin}")
        assert REMEDIES[plugin] in row["hint"]
    assert run_kops("connect", "list", "jdbc-*", "s3-*", "hdfs-*", "elasticsearch-*", "-o", "name").out == ""
