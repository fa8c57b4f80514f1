"""kops' second client trusts the authority that the first one does, however the connection says it."""

from dataclasses import replace
from pathlib import Path

import pytest

from kops.config.connection import Connection
from kops.config.java import java_settings
from kops.config.java_import import convert_properties
from kops.config.librdkafka import librdkafka_settings
from kops.core.errors import ConfigError
from kops.gateways.kafka.admin import kafka_python_settings


def authorities(connection):
    return [one["subject"] for one in kafka_python_settings(connection)["ssl_context"].get_ca_certs()]


def test_an_authority_of_a_file_and_of_a_text(certificates):
    text = Path(certificates.ca_pem).read_text()
    secured = Connection(("b:1",), security_protocol="SSL")
    wanted = authorities(replace(secured, ca_file=certificates.ca_pem))
    assert wanted == [((("commonName", "test CA"),),)]
    assert authorities(replace(secured, client={"ssl.ca.pem": text})) == wanted
    imported = convert_properties({"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": text}, None)
    assert imported.values["client.ssl.ca.pem"].strip() == text.strip()


def test_what_is_no_certificate_is_named():
    with pytest.raises(ConfigError, match=r"ssl\.ca\.pem holds no certificate"):
        kafka_python_settings(Connection(("b:1",), security_protocol="SSL", client={"ssl.ca.pem": "no PEM"}))


def test_spaces_in_place_of_line_ends_are_read_by_both_clients(certificates, tmp_path):
    """As Java does: a variable of a container often has lost its line ends."""
    from confluent_kafka.admin import AdminClient

    def flat(name):
        file = tmp_path / Path(name).name
        file.write_text(Path(name).read_text().replace("\n", " "))
        return str(file)

    secured = Connection(("127.0.0.1:1",), security_protocol="SSL")
    files = {"certificate_file": flat(certificates.client_pem), "key_file": flat(certificates.client_key)}
    inline = Path(certificates.ca_pem).read_text().replace("\n", " ")
    for connection in (
        replace(secured, client={"ssl.ca.pem": inline}, **files),
        replace(secured, ca_file=flat(certificates.ca_pem), **files),
    ):
        assert authorities(connection) == [((("commonName", "test CA"),),)]
        AdminClient(librdkafka_settings(connection) | {"log_level": 0})
        java_settings(connection, tmp_path)


def test_what_openssl_reads_goes_on_as_a_file(certificates):
    settings = librdkafka_settings(Connection(("b:1",), security_protocol="SSL", ca_file=certificates.ca_pem))
    assert settings["ssl.ca.location"] == certificates.ca_pem
    assert "ssl.ca.pem" not in settings
