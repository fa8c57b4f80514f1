import base64
import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest
from confluent_kafka.admin import AdminClient
from javaproperties import dumps as format_properties

from kops.config.java import java_settings, java_system_properties
from kops.config.librdkafka import librdkafka_settings
from kops.config.oauth import OPAQUE_LIFETIME, TokenCommand, expiry, token_of
from kops.core.errors import AuthenticationFailed, ConfigError
from kops.gateways.wire.connections import client_settings
from support.patience import HANG_SECONDS

from .conftest import JWT, JWT_EXPIRY, PASSWORD
from .java_check import ask_java


@pytest.fixture
def token_endpoint():
    """An OAuth token endpoint that gives everybody a token, and remembers who asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
            login = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            asked.append((login, form.get("grant_type"), form.get("scope")))
            body = json.dumps({"access_token": JWT, "token_type": "Bearer", "expires_in": 3600}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token", asked
    server.shutdown()
    server.server_close()


WANTED = (f"kops-client:{PASSWORD}", ["client_credentials"], ["kafka"])


def test_librdkafka_asks_the_token_endpoint(connections, token_endpoint):
    url, asked = token_endpoint
    connection = replace(connections["oauth"], oauth=replace(connections["oauth"].oauth, token_url=url))
    client = AdminClient(librdkafka_settings(connection) | {"log_level": 0})
    deadline = time.monotonic() + HANG_SECONDS
    while not asked and time.monotonic() < deadline:
        client.poll(0.1)
    assert asked[0] == WANTED


def test_java_asks_the_token_endpoint(connections, token_endpoint, kafka_jar_files, tmp_path):
    url, asked = token_endpoint
    connection = replace(connections["oauth"], bootstrap_servers=("127.0.0.1:1",), oauth=replace(connections["oauth"].oauth, token_url=url))
    file = tmp_path / "oauth.properties"
    file.write_text(format_properties(java_settings(connection)))
    options = [f"-D{key}={value}" for key, value in java_system_properties(java_settings(connection)).items()]
    assert ask_java("build", [file], kafka_jar_files, *options) == {"oauth.properties": {"built": "yes"}}
    assert asked[0] == WANTED


def test_the_second_client_asks_the_token_endpoint_as_librdkafka_does(connections, token_endpoint):
    url, asked = token_endpoint
    connection = replace(connections["oauth"], oauth=replace(connections["oauth"].oauth, token_url=url))
    settings = librdkafka_settings(connection) | {"sasl.oauthbearer.extensions": "logicalCluster=lkc-1, identityPoolId=pool"}
    settings.pop("https.ca.location", None)
    provider = client_settings(settings)["sasl_oauth_token_provider"]
    assert provider.token() == JWT
    assert asked == [WANTED]
    assert provider.extensions() == {"logicalCluster": "lkc-1", "identityPoolId": "pool"}
    with pytest.raises(AuthenticationFailed, match="gives no token"):
        token_of(
            settings | {"sasl.oauthbearer.token.endpoint.url": url.replace("/token", "").replace("http://", "http://nowhere.invalid:")}
        )


def test_expiry_of_a_token():
    assert expiry(JWT, 0) == JWT_EXPIRY
    for opaque in ("opaque", "a.b.c", "a.e30.c", "..", "é.ü.ß", "a.bnVsbA.c"):
        assert expiry(opaque, 1000.0) == 1000.0 + OPAQUE_LIFETIME


def test_a_token_command_that_fails_says_so_without_its_output():
    with pytest.raises(ConfigError, match="ended with exit code 1") as failed:
        TokenCommand("sh -c 'echo geheim; exit 1'")()
    assert "geheim" not in str(failed.value)
