"""A registry as a program may have it that is run again: what comes through, and what is reported of the rest."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
import requests

from kops.core.errors import MissingRequirement, OperationFailed
from kops.core.streams.registries import Origin
from kops.gateways.machine.program_connection import no_network_command
from kops.gateways.machine.program_registries import Registries, RegistryProxies
from kops.gateways.registry.read_only import ReadOnlyRegistry, Upstream
from support.patience import HANG_SECONDS

LOGIN = ("context", "secret")
NOT_THERE = {"error_code": 40403, "message": "Schema not found"}


class Registry(BaseHTTPRequestHandler):
    """Answers as a registry, and remembers what it was asked."""

    seen: list
    answers: dict

    def answered(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.seen.append((self.command, self.path, body, self.headers.get("Authorization")))
        status, answer = self.answers.get(self.path, (404, NOT_THERE))
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answered  # noqa: N815 - names of http.server

    def log_message(self, *_):
        pass


@pytest.fixture
def served():
    own = type("Own", (Registry,), {"seen": [], "answers": {}})
    server = HTTPServer(("127.0.0.1", 0), own)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield own, Origin("http", "127.0.0.1", server.server_port)
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def read_only(origin, *, path="", request=None):
    made = ReadOnlyRegistry(Upstream(origin, ("",), request or {"timeout": 10}), socket.create_server(("127.0.0.1", 0)), path)
    try:
        yield made, f"http://127.0.0.1:{made.port}{path}"
    finally:
        made.close()


def test_what_reads_comes_through_with_its_login(served):
    registry, origin = served
    registry.answers["/schemas/ids/7?fetchMaxId=false"] = (200, {"schema": "x"})
    with read_only(origin, request={"timeout": 10, "auth": LOGIN}) as (made, url):
        assert requests.get(f"{url}/schemas/ids/7?fetchMaxId=false", timeout=HANG_SECONDS).json() == {"schema": "x"}
        assert requests.post(f"{url}/subjects/a", json=1, auth=("program", "own"), timeout=HANG_SECONDS).json() == NOT_THERE
        assert made.refusal is made.failure is None
    basic = [requests.auth._basic_auth_str(*login) for login in (LOGIN, ("program", "own"))]
    assert registry.seen == [("GET", "/schemas/ids/7?fetchMaxId=false", b"", basic[0]), ("POST", "/subjects/a", b"1", basic[1])]


def test_a_schema_that_is_there_has_its_id(served):
    registry, origin = served
    registry.answers["/subjects/a?normalize=true"] = (200, {"subject": "a", "id": 12, "version": 3, "schema": "x"})
    with read_only(origin) as (made, url):
        answer = requests.post(f"{url}/subjects/a/versions?normalize=true", data=b"schema", timeout=HANG_SECONDS)
        assert (answer.status_code, answer.json()) == (200, {"id": 12})
        assert made.refusal is None
    assert [seen[:3] for seen in registry.seen] == [("POST", "/subjects/a?normalize=true", b"schema")]


def test_no_schema_is_registered(served):
    registry, origin = served
    with read_only(origin) as (made, url):
        assert requests.post(f"{url}/subjects/a/versions", data=b"schema", timeout=HANG_SECONDS).status_code == 403
        assert made.refusal.message == (
            f"the program would register a schema under the subject a, which does not have it, in the schema registry at {origin.url},"
            " and kops lets it change no registry"
        )
    assert [seen[:2] for seen in registry.seen] == [("POST", "/subjects/a")]


def test_another_error_is_not_taken_for_a_missing_schema(served):
    registry, origin = served
    registry.answers["/subjects/a"] = (404, {"message": "no such page"})
    with read_only(origin) as (made, url):
        assert requests.post(f"{url}/subjects/a/versions", data=b"schema", timeout=HANG_SECONDS).status_code == 404
        assert made.refusal is None


def test_changes_do_not_come_through(served):
    registry, origin = served
    with read_only(origin) as (made, url):
        assert requests.delete(f"{url}/subjects/a", timeout=HANG_SECONDS).status_code == 403
        assert made.refusal.message.startswith("the program asked for a change, DELETE /subjects/a, of the schema registry at ")
    assert registry.seen == []


def test_only_who_knows_the_path_may_ask(served):
    registry, origin = served
    registry.answers["/subjects"] = (200, [])
    with read_only(origin, path="/token") as (_, url):
        assert requests.get(f"{url}/subjects", timeout=HANG_SECONDS).json() == []
        assert requests.get(f"{url.removesuffix('/token')}/subjects", timeout=HANG_SECONDS).status_code == 404
    assert len(registry.seen) == 1


def test_a_registry_that_is_down_is_named():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        origin = Origin("http", "127.0.0.1", gone.getsockname()[1])
    with read_only(origin) as (made, url):
        with pytest.raises(requests.ConnectionError):
            requests.get(f"{url}/subjects", timeout=HANG_SECONDS)
        assert made.failure.message == f"no schema registry answers at {origin.url}"


def test_code_that_speaks_tls_is_named():
    with read_only(Origin("https", "registry", 443)) as (made, url):
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(url.replace("http:", "https:"), timeout=HANG_SECONDS)
        assert made.failure.message.startswith("the program's code names the schema registry https://registry, which kops can only stand")


def test_a_failure_is_explained_while_no_registry_answers(served, tmp_path):
    registry, origin = served
    registry.answers["/subjects"] = (200, [])
    with socket.create_server(("127.0.0.1", 0)) as gone:
        down = Origin("http", "127.0.0.1", gone.getsockname()[1])
    both = Registries(
        tuple(Upstream(each, ("",), {"timeout": 10}) for each in (down, origin)), {"schema.registry.url": f"{down.url},{origin.url}"}
    )
    proxies, error = RegistryProxies(both, alone=False, folder=tmp_path), OperationFailed("the program threw x")
    try:
        first, second = proxies.settings["schema.registry.url"].split(",")
        assert proxies.explained(error) is error
        with pytest.raises(requests.ConnectionError):
            requests.get(f"{first}/subjects", timeout=HANG_SECONDS)
        assert proxies.explained(error).message == f"no schema registry answers at {down.url}; the program threw x"
        assert requests.get(f"{second}/subjects", timeout=HANG_SECONDS).json() == []
        assert proxies.explained(error) is error
    finally:
        proxies.close()


INSIDE = """
import json, socket, urllib.request, urllib.error
def ask(url, method="GET"):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10).read().decode()
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return "nobody"
print(json.dumps([ask("{url}/subjects"), ask("http://10.77.0.5:8081/config", "PUT"), ask("http://10.77.0.6:8081/config", "PUT")]))
"""


def test_in_a_namespace_registries_have_their_own_addresses(served, tmp_path):
    try:
        alone = no_network_command(loopback=True)
    except MissingRequirement as lacking:
        pytest.skip(lacking.message)
    registry, origin = served
    registry.answers["/subjects"] = (200, ["a"])
    origins = (origin, Origin("http", "10.77.0.5", 8081), Origin("https", "registry", 443))
    settings = {"schema.registry.url": ",".join(each.url for each in origins)}
    proxies = RegistryProxies(
        Registries(tuple(Upstream(each, ("",), {"timeout": 10}) for each in origins), settings), alone=True, folder=tmp_path
    )
    try:
        words = [*alone, *proxies.words, sys.executable, "-I", "-S", "-c", INSIDE.replace("{url}", origin.url)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=dict(os.environ), pass_fds=proxies.fds) as process:
            proxies.answer()
            said, _ = process.communicate()
    finally:
        proxies.close()
    assert json.loads(said) == ['["a"]', 403, "nobody"]
    assert proxies.settings == {"schema.registry.url": f"{origin.url},http://10.77.0.5:8081,http://127.0.1.3:443"}
    assert "127.0.1.3 registry" in (tmp_path / "hosts").read_text().splitlines()
