import subprocess
from pathlib import Path

import pytest
from javaproperties import dumps as format_properties

from kops.config.java import java_settings
from kops.config.java_import import convert_properties, read_client_properties
from kops.config.librdkafka import librdkafka_settings
from kops.config.load import resolve
from kops.config.paths import directories
from kops.core.errors import ConfigError

from .conftest import KEY_PASSWORD

WORD = "geheim-4711"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def read(tmp_path, text):
    file = tmp_path / "client.properties"
    file.write_text(text)
    file.chmod(0o600)
    return read_client_properties(file)


def test_scram_over_tls(tmp_path, certificates):
    found = read(
        tmp_path,
        f"""
bootstrap.servers=a:9093,b:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config={SCRAM} required \\
    username="alice" password="p\\\\"a\\\\\\\\s;";
ssl.truststore.type=PEM
ssl.truststore.location={certificates.ca_pem}
ssl.endpoint.identification.algorithm=
request.timeout.ms=12000
client.id=reports
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
""",
    )
    assert found.values == {
        "bootstrap_servers": ("a:9093", "b:9093"),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "username": "alice",
        "ca_file": certificates.ca_pem,
        "verify_hostname": False,
        "timeout": 12.0,
        "client.client.id": "reports",
    }
    assert found.secrets == {"password": 'p"a\\s;'}
    assert found.notes == ("key.deserializer is not used by kops",)
    assert "alice" in repr(found)
    assert 'p"a' not in repr(found)


def test_plain_needs_no_mechanism_beside_its_login_module(tmp_path):
    text = f'sasl.jaas.config={SCRAM.replace("scram.Scram", "plain.Plain")} required username="u" password="p";'
    assert read(tmp_path, text).values["sasl_mechanism"] == "PLAIN"


def test_librdkafka_names_are_understood_too(tmp_path):
    """The client.properties that cloud consoles hand out for Python and C."""
    found = read(
        tmp_path, f"bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanisms=PLAIN\nsasl.username=u\nsasl.password={WORD}\n"
    )
    assert found.values == {"bootstrap_servers": ("a:1",), "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "username": "u"}
    assert found.secrets == {"password": WORD}


def test_what_java_settings_writes_is_read_back(connections, tmp_path, home):
    """Java's own file, through ``--command-config``, comes to the same connection for librdkafka."""
    for name, connection in connections.items():
        if name == "oauth-command":
            continue
        file = tmp_path / f"{name}.properties"
        file.write_text(format_properties(java_settings(connection, tmp_path / name)))
        file.chmod(0o600)
        found = resolve(directories({"HOME": str(home)}), {"HOME": str(home)}, command_config=file)
        wanted = librdkafka_settings(connection)
        if name in {"mtls", "mtls-encrypted"}:
            (combined,) = map(str, (tmp_path / name).glob("keystore-*.pem"))
            wanted |= {"ssl.certificate.location": combined, "ssl.key.location": combined}
        assert librdkafka_settings(found) == wanted, name
        assert found.warnings == (), name


def test_stores_that_librdkafka_cannot_open_say_how_to_convert_them(certificates, tmp_path, jdk):
    jks = tmp_path / "trust.jks"
    arguments = ["-importcert", "-noprompt", "-alias", "ca", "-file", certificates.ca_pem, "-keystore", str(jks), "-storepass", "changeit"]
    subprocess.run([str(jdk.tool("keytool")), *arguments, "-storetype", "JKS"], check=True, capture_output=True)
    for store, kind in ((jks, "JKS"), (certificates.client_p12, "PKCS12")):
        with pytest.raises(ConfigError, match=f"trust store .* is {kind}; librdkafka needs PEM") as refused:
            convert_properties({"ssl.truststore.location": str(store), "ssl.truststore.password": WORD})
        assert "keytool -list -rfc" in str(refused.value.hint)
        assert WORD not in str(refused.value) + str(refused.value.hint)
    with pytest.raises(ConfigError, match=r"key store .* is JKS") as refused:
        convert_properties({"ssl.keystore.location": str(jks)})
    assert "keytool -importkeystore" in str(refused.value.hint)


def test_the_conversion_that_the_hint_names_works(certificates, tmp_path, jdk):
    store = tmp_path / "trust.p12"
    arguments = [
        "-importcert",
        "-noprompt",
        "-alias",
        "ca",
        "-file",
        certificates.ca_pem,
        "-keystore",
        str(store),
        "-storepass",
        "changeit",
    ]
    subprocess.run([str(jdk.tool("keytool")), *arguments], check=True, capture_output=True)
    with pytest.raises(ConfigError) as refused:
        convert_properties({"ssl.truststore.location": str(store)})
    command = str(refused.value.hint).split(": ", 1)[1].split(", then")[0]
    subprocess.run(["sh", "-c", command.replace("keytool", f"{jdk.tool('keytool')} -storepass changeit", 1)], check=True, cwd=tmp_path)
    assert convert_properties({"ssl.truststore.location": str(tmp_path / "ca.pem")}).values == {"ca_file": str(tmp_path / "ca.pem")}
    assert (tmp_path / "ca.pem").read_text().split() == Path(certificates.ca_pem).read_text().split()


def test_pkcs12_and_pem_key_stores(certificates):
    found = convert_properties({"ssl.keystore.location": certificates.client_p12, "ssl.keystore.password": KEY_PASSWORD})
    assert (found.values, found.secrets) == ({"keystore_file": certificates.client_p12}, {"keystore_password": KEY_PASSWORD})
    pem = convert_properties({"ssl.keystore.location": certificates.both_pem, "ssl.keystore.type": "PEM"})
    assert pem.values == {"certificate_file": certificates.both_pem, "key_file": certificates.both_pem}
    inline = convert_properties({"ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----"})
    assert inline.values == {"client.ssl.ca.pem": "-----BEGIN CERTIFICATE-----"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "names com.sun.security"),
        (f'sasl.jaas.config={SCRAM} required password="{WORD}', "no semicolon ends it"),
        ("ssl.keystore.key=-----BEGIN PRIVATE KEY-----" + WORD, "holds the private key itself"),
        ("sasl.password=${file:/secrets:password}", "reference for a Java config provider"),
        ("security.protocol=SSLv3", "security.protocol must be one of"),
        ("ssl.truststore.location=/nowhere/trust.jks", "cannot read the store /nowhere/trust.jks"),
        ("a=\\u12", "hexadecimal"),
    ],
)
def test_what_kops_cannot_do_is_said(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as refused:
        read(tmp_path, text)
    assert str(tmp_path / "client.properties") in refused.value.message
    assert WORD not in refused.value.message


def test_a_missing_file_and_one_that_everybody_reads(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere"):
        read_client_properties(tmp_path / "nowhere")
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.password={WORD}")
    file.chmod(0o644)
    assert "can be read by everybody" in " ".join(read_client_properties(file).notes)
    file.write_text("client.id=x")
    assert read_client_properties(file).notes == ()
