"""``--security sasl-ssl``: SCRAM-SHA-512 over TLS, with a certificate authority of its own."""

import socket
import ssl
import stat
import subprocess

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kops.sandbox.parts import recorded
from support.patience import HANG_SECONDS
from support.streams import java_command

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def secured(own_brokers):
    return own_brokers(security="sasl-ssl")


def refused(settings: dict[str, str]) -> list[str]:
    """Return the errors that a client with these settings gets."""
    from confluent_kafka import KafkaError

    errors: list[KafkaError] = []
    admin = AdminClient({**settings, "error_cb": errors.append, "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=4)
    admin.poll(0)
    return [f"{error.name()} {error.str()}" for error in errors]


def test_its_user_writes_and_the_context_reads(secured, run_kops, home):
    admin = AdminClient(secured.client)
    admin.create_topics([NewTopic("orders", 2)])["orders"].result(HANG_SECONDS)
    producer = Producer(secured.client)
    producer.produce("orders", b"value", key=b"key")
    assert producer.flush(HANG_SECONDS) == 0
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    lines = "".join(f"{key} = {value!r}\n" for key, value in secured.sandbox.context().items())
    config.write_text(f"[contexts.secured]\n{lines}")
    listed = run_kops("topics", "list", "-c", "secured", "-o", "json").ok().json
    assert "orders" in [topic["name"] for topic in listed]


def test_a_wrong_password_is_refused(secured):
    assert any("_AUTHENTICATION" in error for error in refused({**secured.client, "sasl.password": "wrong"}))


def test_without_its_authority_nothing_is_sent(secured):
    trustless = {name: value for name, value in secured.client.items() if name != "ssl.ca.location"}
    assert any("_SSL" in error for error in refused(trustless))


def test_a_client_without_tls_gets_nothing(secured):
    assert refused({"bootstrap.servers": secured.bootstrap_servers})


def test_the_controllers_talk_only_to_who_has_the_brokers_certificate(secured):
    context = ssl.create_default_context(cafile=str(secured.sandbox.ca_file))
    node = secured.sandbox.nodes[0]
    with (
        socket.create_connection(("127.0.0.1", node.controller_port), HANG_SECONDS) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
        context.wrap_socket(plain, server_hostname="localhost") as stranger,
    ):
        stranger.sendall(b"\0" * 64)
        while stranger.recv(1024):
            pass


def test_the_certificate_is_of_the_authority_and_names_the_host(secured):
    context = ssl.create_default_context(cafile=str(secured.sandbox.ca_file))
    port = secured.sandbox.nodes[0].port
    for name in ("localhost", "127.0.0.1"):
        with (
            socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name) as known,
        ):
            assert known.getpeercert()["issuer"] == ((("commonName", "kops sandbox CA"),),)


def test_secrets_are_in_private_files_and_not_in_ps(secured):
    sandbox = secured.sandbox
    password = sandbox.password_file.read_text().strip()
    holding = [file for file in sandbox.directory.rglob("*") if file.is_file() and password.encode() in file.read_bytes()]
    assert {file.name for file in holding} == {"password", "client.properties", "server.properties"}
    private = [*holding, sandbox.directory / "tls" / "broker.p12", sandbox.directory / "tls" / "store-password"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
    assert stat.S_IMODE((sandbox.directory / "tls").stat().st_mode) == 0o700
    pid = recorded(secured.part()).pid
    for shown in ("cmdline", "environ"):
        with open(f"/proc/{pid}/{shown}", "rb") as file:  # noqa: PTH123 - not a file on disk
            assert password.encode() not in file.read()


def test_apaches_tools_take_its_client_properties(secured):
    command = [*java_command("org.apache.kafka.tools.TopicCommand"), "--list"]
    properties = secured.sandbox.directory / "client.properties"
    options = ["--bootstrap-server", secured.bootstrap_servers, "--command-config", str(properties)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kops_takes_its_client_properties(secured, run_kops):
    properties = secured.sandbox.directory / "client.properties"
    run_kops("topics", "list", "--command-config", properties, "-o", "json").ok()


def test_it_comes_back_after_a_crash_with_the_same_credentials(secured):
    secured.kill()
    secured.start()
    admin = AdminClient(secured.client)
    assert admin.list_topics(timeout=HANG_SECONDS).brokers
