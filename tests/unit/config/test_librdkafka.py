from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kops.config.librdkafka import librdkafka_settings, without_files
from kops.config.oauth import TokenCommand
from kops.gateways.wire.connections import tls_context

from .conftest import JWT, JWT_EXPIRY, KEY_PASSWORD, PASSWORD

COMMON = {"bootstrap.servers": "broker-1:9093,broker-2:9093", "client.id": "kops"}


def expected(certificates):
    tls = {"security.protocol": "SSL", "ssl.ca.location": certificates.ca_pem, "ssl.endpoint.identification.algorithm": "https"}
    mtls = {**tls, "ssl.certificate.location": certificates.client_pem, "ssl.key.location": certificates.client_key}
    sasl_ssl = {**tls, "security.protocol": "SASL_SSL"}
    login = {"sasl.username": "alice", "sasl.password": PASSWORD}
    return {
        "plaintext": {"security.protocol": "PLAINTEXT"},
        "tls": tls,
        "tls-any-name": {**tls, "ssl.endpoint.identification.algorithm": "none"},
        "mtls": mtls,
        "mtls-encrypted": {**mtls, "ssl.key.location": certificates.encrypted_key, "ssl.key.password": KEY_PASSWORD},
        "mtls-one-file": {**tls, "ssl.certificate.location": certificates.both_pem, "ssl.key.location": certificates.both_pem},
        "mtls-pkcs12": {**tls, "ssl.keystore.location": certificates.client_p12, "ssl.keystore.password": KEY_PASSWORD},
        "sasl-plain": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **login},
        "sasl-scram-256": {**sasl_ssl, "sasl.mechanism": "SCRAM-SHA-256", **login},
        "sasl-scram-512": {**sasl_ssl, "sasl.mechanism": "SCRAM-SHA-512", **login},
        "oauth": {
            **sasl_ssl,
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
            "sasl.oauthbearer.client.id": "kops-client",
            "sasl.oauthbearer.client.secret": PASSWORD,
            "sasl.oauthbearer.scope": "kafka",
        },
    }


def test_golden_settings(connections, certificates):
    wanted = expected(certificates)
    assert {name: librdkafka_settings(connections[name]) for name in wanted} == {name: COMMON | wanted[name] for name in wanted}


def test_token_command_becomes_a_callback(connections):
    settings = librdkafka_settings(connections["oauth-command"])
    callback = settings.pop("oauth_cb")
    assert isinstance(callback, TokenCommand)
    assert callback("") == (JWT, JWT_EXPIRY)
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    assert "sasl.oauthbearer.method" not in settings


@pytest.mark.parametrize(
    "name",
    [
        "plaintext",
        "tls",
        "tls-any-name",
        "mtls",
        "mtls-encrypted",
        "mtls-one-file",
        "mtls-pkcs12",
        "sasl-plain",
        "sasl-scram-256",
        "sasl-scram-512",
        "oauth",
        "oauth-command",
    ],
)
def test_librdkafka_accepts_them(connections, name):
    """It reads certificates and keys, and checks every name and value, when a client is made; nothing listens at the brokers' names."""
    AdminClient(librdkafka_settings(connections[name]) | {"log_level": 0})


def test_properties_of_the_context_and_the_flag_go_through(connections):
    from dataclasses import replace

    connection = replace(connections["plaintext"], client={"socket.timeout.ms": "5000", "client.id": "mine"})
    settings = librdkafka_settings(connection)
    assert settings["socket.timeout.ms"] == "5000"
    assert settings["client.id"] == "mine"


@pytest.mark.parametrize("name", ["tls", "mtls", "mtls-encrypted", "mtls-one-file"])
def test_files_travel_as_texts(connections, certificates, name):
    settings = librdkafka_settings(connections[name])
    moved = without_files(settings)
    assert not [setting for setting in moved if setting.endswith(".location")]
    for setting, path in settings.items():
        if setting.endswith(".location"):
            assert moved[setting.replace(".location", ".pem")] == Path(path).read_text()
    tls_context(moved)
