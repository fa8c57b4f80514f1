"""kops' second client trusts the authority that the first one does, however the connection says it."""

from dataclasses import replace
from pathlib import Path

import pytest

from kops.config.connection import Connection
from kops.config.java_import import convert_properties
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
    with pytest.raises(ConfigError, match="TLS files"):
        kafka_python_settings(Connection(("b:1",), security_protocol="SSL", client={"ssl.ca.pem": "no PEM"}))
