import hashlib
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from javaproperties import dumps as format_properties

from kops.config.connection import Connection
from kops.config.java import ALLOWED_URLS, OAUTH_HANDLER, java_settings, java_system_properties, token_file, write_private, write_token
from kops.core.errors import ConfigError

from .conftest import JWT, KEY_PASSWORD
from .java_check import ask_java

SCRAM_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="p\\"a\\\\s s;=ü";'
PLAIN_JAAS = SCRAM_JAAS.replace("scram.Scram", "plain.Plain")
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def store_name(certificates, key="client_key"):
    return f"keystore-{digest(Path(getattr(certificates, key)).read_text() + Path(certificates.client_pem).read_text())}.pem"


def expected(certificates, folder, connections):
    tls = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.ca_pem,
        "ssl.endpoint.identification.algorithm": "https",
    }
    mtls = {**tls, "ssl.keystore.type": "PEM", "ssl.keystore.location": f"{folder}/{store_name(certificates)}"}
    sasl = {**tls, "security.protocol": "SASL_SSL"}
    oauth = {**sasl, "sasl.mechanism": "OAUTHBEARER", "sasl.login.callback.handler.class": OAUTH_HANDLER}
    return {
        "plaintext": {"security.protocol": "PLAINTEXT"},
        "tls": tls,
        "tls-any-name": {**tls, "ssl.endpoint.identification.algorithm": ""},
        "mtls": mtls,
        "mtls-encrypted": {
            **mtls,
            "ssl.keystore.location": f"{folder}/{store_name(certificates, 'encrypted_key')}",
            "ssl.key.password": KEY_PASSWORD,
        },
        "mtls-one-file": {**mtls, "ssl.keystore.location": certificates.both_pem},
        "mtls-pkcs12": {
            **tls,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": certificates.client_p12,
            "ssl.keystore.password": KEY_PASSWORD,
        },
        "sasl-plain": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_JAAS},
        "sasl-scram-256": {**sasl, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": SCRAM_JAAS},
        "sasl-scram-512": {**sasl, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM_JAAS},
        "oauth": {
            **oauth,
            "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
            "sasl.jaas.config": f'{OAUTH_MODULE} required clientId="kops-client" clientSecret="p\\"a\\\\s s;=ü" scope="kafka";',
        },
        "oauth-command": {
            **oauth,
            "sasl.oauthbearer.token.endpoint.url": token_file(connections["oauth-command"], folder).as_uri(),
            "sasl.jaas.config": f"{OAUTH_MODULE} required;",
        },
    }


def test_golden_settings(connections, certificates, tmp_path):
    wanted = expected(certificates, tmp_path, connections)
    servers = {"bootstrap.servers": "broker-1:9093,broker-2:9093"}
    assert set(wanted) == set(connections)
    for name, settings in wanted.items():
        assert java_settings(connections[name], tmp_path) == servers | settings, name


def test_files_that_java_reads_are_private(connections, certificates, tmp_path):
    folder = tmp_path / "made"
    java_settings(connections["mtls"], folder)
    java_settings(connections["oauth-command"], folder)
    store = (folder / store_name(certificates)).read_text()
    assert store == Path(certificates.client_key).read_text() + Path(certificates.client_pem).read_text()
    assert token_file(connections["oauth-command"], folder).read_text() == JWT
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_without_a_folder_everything_is_in_the_values(connections, certificates):
    settings = java_settings(connections["mtls-encrypted"])
    assert settings["ssl.truststore.certificates"] == Path(certificates.ca_pem).read_text()
    assert settings["ssl.keystore.certificate.chain"] == Path(certificates.client_pem).read_text()
    assert settings["ssl.keystore.key"] == Path(certificates.encrypted_key).read_text()
    assert not [key for key in settings if key.endswith(".location")]
    for name in ("mtls-pkcs12", "oauth-command"):
        with pytest.raises(ConfigError, match="cannot be sent to other machines"):
            java_settings(connections[name])


def test_only_properties_that_java_knows_go_through():
    connection = Connection(("a:1",), client={"client.id": "mine", "socket.timeout.ms": "1", "ssl.ca.pem": "x"})
    assert java_settings(connection) == {"bootstrap.servers": "a:1", "security.protocol": "PLAINTEXT", "client.id": "mine"}
    inline = replace(connection, security_protocol="SSL")
    assert java_settings(inline)["ssl.truststore.certificates"] == "x"


def test_keys_and_certificates_that_java_cannot_read(connections, certificates, tmp_path):
    with pytest.raises(ConfigError, match=r"not PKCS#8") as refused:
        java_settings(replace(connections["mtls"], key_file=certificates.pkcs1_key), tmp_path)
    assert "openssl pkcs8 -topk8" in (refused.value.hint or "")
    with pytest.raises(ConfigError, match="PBES2"):
        java_settings(replace(connections["mtls-encrypted"], key_file=certificates.pbes2_key))
    with pytest.raises(ConfigError, match="is not PEM"):
        java_settings(replace(connections["mtls"], certificate_file=certificates.client_p12), tmp_path)
    with pytest.raises(ConfigError, match="cannot read /nowhere"):
        java_settings(replace(connections["tls"], ca_file="/nowhere"))


def test_java_fetches_tokens_only_from_where_it_is_allowed(connections):
    assert java_system_properties(java_settings(connections["oauth"])) == {ALLOWED_URLS: "http://127.0.0.1:1/token"}
    assert java_system_properties(java_settings(connections["tls"])) == {}


def test_the_real_java_builds_a_client_of_each(connections, kafka_jar_files, tmp_path):
    """An admin client reads trust and key stores and logs in when it is built; test_oauth.py has the token endpoint for "oauth"."""
    files = []
    for name, connection in connections.items():
        if name == "oauth":
            continue
        local = replace(connection, bootstrap_servers=("127.0.0.1:1",))
        ways = {"folder": tmp_path / name, "values": None}
        for way, folder in ways.items():
            if folder is None and name in {"mtls-pkcs12", "oauth-command"}:
                continue
            file = tmp_path / f"{name}-{way}.properties"
            file.write_text(format_properties(java_settings(local, folder)))
            files.append(file)
    token = token_file(connections["oauth-command"], tmp_path / "oauth-command").as_uri()
    needed = java_system_properties(java_settings(connections["oauth-command"], tmp_path / "oauth-command"))
    assert needed == {ALLOWED_URLS: token}
    answers = ask_java("build", files, kafka_jar_files, *(f"-D{key}={value}" for key, value in needed.items()))
    assert answers == {file.name: {"built": "yes"} for file in files}


def test_two_identities_have_files_of_their_own(connections, certificates, tmp_path):
    """Executors still open consumers of one context while another begins."""
    first = java_settings(connections["mtls"], tmp_path)["ssl.keystore.location"]
    content = Path(first).read_text()
    second = java_settings(connections["mtls-encrypted"], tmp_path)["ssl.keystore.location"]
    assert first != second
    assert Path(first).read_text() == content
    other = replace(connections["oauth-command"], oauth=replace(connections["oauth-command"].oauth, token_command="echo another"))
    urls = {java_settings(one, tmp_path)["sasl.oauthbearer.token.endpoint.url"] for one in (connections["oauth-command"], other)}
    assert len(urls) == 2
    assert token_file(other, tmp_path).read_text() == "another"


def test_a_token_is_written_again_in_the_same_file(connections, tmp_path):
    url = java_settings(connections["oauth-command"], tmp_path)["sasl.oauthbearer.token.endpoint.url"]
    file = token_file(connections["oauth-command"], tmp_path)
    assert file.as_uri() == url
    file.write_text("old")
    assert write_token(connections["oauth-command"], tmp_path) > 0
    assert file.read_text() == JWT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_leaves_no_part_of_a_secret(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "secret", "s" * 100_000 + "\ud800")
    assert not list(tmp_path.iterdir())
