"""What kops says of a plugin that no worker has."""

import pytest
import yaml

from kops.gateways.connect.plugins import FILE_STREAM, parse_coordinate
from kops.gateways.machine.jars import CONNECT_VERSION
from kops.operations.connect.plugins import install_hint
from support.faulty_connect import Answer, faulty_worker

__all__ = ["faulty_worker"]


@pytest.mark.parametrize(
    ("plugin", "coordinate"),
    [
        ("FileStreamSink", FILE_STREAM),
        ("org.apache.kafka.connect.file.FileStreamSourceConnector", FILE_STREAM),
        ("org.apache.kafka.connect.mirror.MirrorSourceConnector", f"org.apache.kafka:connect-mirror:{CONNECT_VERSION}"),
        ("io.debezium.connector.postgresql.PostgresConnector", "io.debezium:debezium-connector-postgres:3.6.0.Final"),
        ("io.debezium.connector.jdbc.JdbcSinkConnector", "io.debezium:debezium-connector-jdbc:3.6.0.Final"),
        ("io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector", "io.aiven:s3-connector-for-apache-kafka:2.15.0"),
    ],
)
def test_install_hint_names_maven_coordinate(plugin, coordinate):
    assert f"kops connect plugins add {coordinate}, then restart them" in install_hint(plugin)
    parse_coordinate(coordinate)


def test_install_hint_for_plugins_outside_maven_central():
    assert "not on Maven Central, the releases of Aiven-Open" in install_hint("io.aiven.connect.jdbc.JdbcSourceConnector")
    assert "Confluent Hub has it; for the sandbox: kops sandbox up --connect --plugins" in install_hint("io.confluent.X")
    assert "kops connect plugins add GROUP:ARTIFACT:VERSION" in install_hint("org.example.NoSink")


def test_unresolvable_reference_is_one_invalid_setting(faulty_worker, run_kops, monkeypatch, tmp_path):
    said = "org.apache.kafka.common.config.ConfigException: Could not read properties from file /run/shop.properties"
    fine = Answer(200, {"error_count": 0, "configs": []})
    plugins, failed = Answer(200, [{"class": "a.B", "type": "source"}]), Answer(500, {"error_code": 500, "message": said})
    one, two = (Answer(404, {"error_code": 404, "message": f"Connector {name} not found"}) for name in ("one", "two"))
    worker = faulty_worker(one, plugins, failed, two, fine)
    monkeypatch.setenv("KOPS_CONNECT_URLS", worker.url)
    one = {"name": "one", "connector.class": "a.B", "other": "${env:X}", "password": "${file:/run/shop.properties:password}"}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump_all([one, {"name": "two", "connector.class": "a.B"}]))
    found = run_kops("connect", "validate", tmp_path, "-o", "json")
    (row,) = found.json
    assert (found.code, row["connector"], row["setting"], row["level"]) == (2, "one", "password", "error")
    assert said in row["message"]
    assert "config.providers" in row["hint"]
