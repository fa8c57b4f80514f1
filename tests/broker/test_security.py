"""One context on a cluster that is really secured: SCRAM-SHA-512 over TLS with an authority of its own.

The same connection is handed to kops (librdkafka) and to Apache's own tool (Java); both must see the same topics.
"""

import socket
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from javaproperties import dumps as format_properties

from kops.config.contexts import save_context
from kops.config.http import http_session
from kops.config.java import java_settings
from kops.config.librdkafka import librdkafka_settings
from kops.config.load import resolve
from kops.config.paths import directories
from kops.config.secrets import from_value
from kops.core.errors import AuthenticationFailed
from kops.gateways.kafka.admin import Wire
from kops.gateways.kafka.client import Client
from kops.gateways.wire.connections import tls_context
from support.patience import HANG_SECONDS
from support.streams import java_command

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def secured(own_brokers):
    own = own_brokers(security="sasl-ssl")
    admin = AdminClient(librdkafka_settings(own.connection))
    for future in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("returns", 1, 1)], operation_timeout=HANG_SECONDS).values():
        future.result(HANG_SECONDS)
    return own


@pytest.fixture
def environ(home):
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}


@pytest.fixture
def context(secured, environ):
    """The sandbox as a saved context, resolved again."""
    save_context(directories(environ), "secured", secured.sandbox.context(), current=True)
    return resolve(directories(environ), environ)


def apache_topics(secured, file: Path) -> subprocess.CompletedProcess:
    command = java_command("org.apache.kafka.tools.TopicCommand")
    arguments = ["--bootstrap-server", secured.bootstrap_servers, "--command-config", str(file), "--list"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


def test_kops_and_librdkafka_connect(context, run_kops):
    assert {"orders", "returns"} <= set(AdminClient(librdkafka_settings(context)).list_topics(timeout=HANG_SECONDS).topics)
    body = run_kops("context", "test", "-o", "json").ok().json
    assert (body["security_protocol"], body["sasl_mechanism"], body["authenticated_as"]) == ("SASL_SSL", "SCRAM-SHA-512", "kops")
    assert {"orders", "returns"} <= set(run_kops("topics", "list", "-o", "name").ok().out.split())


@pytest.mark.parametrize("inline", [False, True], ids=["files", "values"])
def test_apaches_tool_connects_with_the_java_settings(secured, context, tmp_path, inline):
    file = tmp_path / "client.properties"
    file.write_text(format_properties(java_settings(context, None if inline else tmp_path)))
    done = apache_topics(secured, file)
    assert done.returncode == 0, done.stderr
    assert {"orders", "returns"} <= set(done.stdout.split())


def test_the_file_that_apaches_tool_takes_kops_takes_too(context, environ, run_kops, tmp_path, secured):
    file = tmp_path / "client.properties"
    file.write_text(format_properties(java_settings(context, tmp_path)))
    file.chmod(0o600)
    by_flag = run_kops("context", "test", "--command-config", file, "-B", secured.bootstrap_servers, "-o", "json").ok()
    assert by_flag.json["authenticated_as"] == "kops"
    assert by_flag.json["name"] is None
    run_kops("context", "import", file, "--name", "imported").ok()
    imported = run_kops("context", "test", "imported", "-o", "json").ok()
    assert imported.json["cluster_id"] == by_flag.json["cluster_id"]


def test_certificates_that_have_lost_their_line_ends(context, environ, run_kops, tmp_path, secured):
    settings = java_settings(context, tmp_path)
    trusted = Path(settings.pop("ssl.truststore.location")).read_text(encoding="utf-8")
    file = tmp_path / "client.properties"
    file.write_text(format_properties(settings | {"ssl.truststore.certificates": trusted.replace("\n", " ")}))
    file.chmod(0o600)
    assert apache_topics(secured, file).returncode == 0
    run_kops("context", "import", file, "--name", "flat").ok()
    assert "orders" in run_kops("topics", "list", "-c", "flat", "-o", "name").ok().out.split()


def test_password_from_the_environment_and_a_command(context, secured, run_kops, monkeypatch):
    monkeypatch.setenv("KOPS_PASSWORD", secured.sandbox.password_file.read_text().strip())
    assert run_kops("context", "test").ok()
    monkeypatch.delenv("KOPS_PASSWORD")
    monkeypatch.setenv("KOPS_PASSWORD_COMMAND", f"cat {secured.sandbox.password_file}")
    assert run_kops("context", "test").ok()


def test_a_wrong_password_is_exit_3_and_not_repeated(context, run_kops, monkeypatch):
    monkeypatch.setenv("KOPS_PASSWORD", "geheim-4711")
    refused = run_kops("context", "test", "--timeout", "15")
    assert (refused.code, refused.out) == (3, "")
    assert "geheim" not in refused.err


def test_java_refuses_a_wrong_password_too(secured, context, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(format_properties(java_settings(replace(context, password=from_value("a test", "wrong")), tmp_path)))
    done = apache_topics(secured, file)
    assert done.returncode != 0
    assert "SaslAuthenticationException" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        pytest.param("security.protocol=PLAINTEXT", "speaks TLS\nhint: security_protocol is PLAINTEXT; with TLS it is", id="in the clear"),
        pytest.param("security.protocol=SASL_PLAINTEXT", "speaks TLS\nhint: security_protocol is SASL_PLAINTEXT", id="without TLS"),
        pytest.param("security.protocol=SSL", "may require a login (SASL)", id="without a login"),
        pytest.param(
            "ssl.ca.location=OTHER",
            "presents the certificate of CN=localhost (127.0.0.1, localhost) by CN=kops sandbox CA: self-signed certificate",
            id="an authority of somebody else",
        ),
    ],
)
def test_wrong_security_is_exit_3_and_says_what_listens_there(context, run_kops, other_authority, flag, said):
    refused = run_kops("context", "test", "--timeout", "8", "-X", flag.replace("OTHER", str(other_authority)))
    assert (refused.code, refused.out) == (3, ""), refused.err
    assert said in refused.err


def test_an_authority_that_java_accepts_is_accepted_with_the_defaults_of_python_3_13(context, monkeypatch):
    as_before = ssl.create_default_context

    def strict(**options):
        made = as_before(**options)
        made.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        return made

    monkeypatch.setattr(ssl, "create_default_context", strict)
    with pytest.raises(ssl.SSLCertVerificationError):  # the sandbox's authority is made by keytool
        handshake(context, strict(cafile=context.ca_file))
    assert handshake(context, tls_context(librdkafka_settings(context)))
    assert handshake(context, http_session().get_adapter("https://").poolmanager.connection_pool_kw["ssl_context"], context.ca_file)


def handshake(context, tls, ca_file=None):
    """Whether a handshake with the broker succeeds."""
    host, _, port = context.bootstrap_servers[0].rpartition(":")
    if ca_file:
        tls.load_verify_locations(ca_file)
    with socket.create_connection((host, int(port))) as plain, tls.wrap_socket(plain, server_hostname=host) as secure:
        return secure.version()


def test_kafka_python_says_whose_certificate_it_refuses(context, other_authority):
    client = Client(replace(context, timeout=10.0))
    client.settings  # noqa: B018 - librdkafka's, of the right authority
    client.connection = replace(client.connection, ca_file=str(other_authority))
    with pytest.raises(AuthenticationFailed, match=r"the certificate of CN=localhost .*: self-signed certificate"):
        Wire(client).ask("list groups", lambda admin: admin.list_groups())


def test_files_that_are_not_there_or_not_pem_are_named(context, run_kops, tmp_path):
    (tmp_path / "no.pem").write_text("x")
    for path, message in {"/nowhere/ca.pem": "cannot read /nowhere/ca.pem (ca_file)", tmp_path / "no.pem": "(ca_file) is not PEM"}.items():
        refused = run_kops("context", "test", "-X", f"ssl.ca.location={path}")
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err


@pytest.fixture
def other_authority(tmp_path, jdk):
    store = tmp_path / "other.p12"
    key = ["-genkeypair", "-alias", "x", "-keyalg", "EC", "-dname", "CN=other", "-ext", "bc:c"]
    export = ["-exportcert", "-rfc", "-alias", "x", "-file", str(tmp_path / "other.pem")]
    for arguments in (key, export):
        command = [str(jdk.tool("keytool")), *arguments, "-keystore", str(store), "-storepass", "changeit"]
        subprocess.run(command, check=True, capture_output=True)
    return tmp_path / "other.pem"


def test_a_user_logs_in_with_the_password_that_kops_made_until_it_is_replaced(context, run_kops, unique, tmp_path, monkeypatch):
    user = unique("user")

    def logged_in(file):
        with monkeypatch.context() as patched:
            patched.setenv("KOPS_PASSWORD", (tmp_path / file).read_text().strip())
            return run_kops("context", "test", "-X", f"sasl.username={user}", "--timeout", "15", "-o", "json")

    run_kops("users", "create", user, "--generate", tmp_path / "first", "--yes").ok()
    assert logged_in("first").ok().json["authenticated_as"] == user
    run_kops("users", "alter", user, "--generate", tmp_path / "second", "--confirm", user).ok()
    assert logged_in("first").code == 3
    assert logged_in("second").ok()
    own = run_kops("users", "delete", "kops", "--confirm", "kops")
    assert (own.code, "kops itself is logged in as kops" in own.err) == (5, True)
    warned = run_kops("users", "alter", "kops", "--generate", tmp_path / "third", "--dry-run").ok().err
    assert "kops itself logs in as kops" in warned
