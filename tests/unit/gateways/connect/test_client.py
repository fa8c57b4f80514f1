"""Which Connect worker is asked, with which login, and what happens when none answers."""

import http.server
import json
import threading

import pytest

from kops.config.connection import Connection, Http, Secret
from kops.core.errors import AuthenticationFailed, AuthorizationFailed, OperationFailed, TimedOut, Unreachable
from kops.core.permit import Permit
from kops.gateways.connect import Connect
from support.faulty_connect import expanded
from support.patience import HANG_SECONDS


@pytest.fixture
def worker():
    """A Connect worker with one answer: ``worker(status, content)`` returns its address; ``worker.asked`` has its requests."""
    servers = []

    def start(status=200, content=b"{}", wait=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                start.asked.append((self.path, self.headers.get("Authorization")))
                if wait:
                    wait.wait(HANG_SECONDS)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    start.asked = []
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def connection(*urls, **more):
    return Connection(("b:1",), connect_urls=urls, timeout=HANG_SECONDS, **more)


def test_the_first_worker_that_answers_is_asked(worker):
    url = worker(content=json.dumps({"b": expanded("b"), "a": expanded("a", state="PAUSED")}).encode())
    connectors = Connect(connection("http://127.0.0.1:1", f"{url}/")).connectors()
    assert [(one.name, one.state) for one in connectors] == [("a", "PAUSED"), ("b", "RUNNING")]
    assert worker.asked == [("/connectors?expand=status&expand=info", None)]


def test_without_a_permit_nothing_is_changed(worker):
    connect = Connect(Connection((), connect_urls=(worker(content=b"[]"),)), permit=Permit())
    for change in (lambda: connect.delete("a"), lambda: connect.put("a", {}), lambda: connect.change_state("a", "stop")):
        with pytest.raises(RuntimeError, match="no plan is being carried out"):
            change()
    assert (connect.names(), len(worker.asked)) == ((), 1)


def test_a_login(worker):
    http_settings = Http(connect_username="me", connect_password=Secret("test", lambda: "secret"))
    Connect(connection(worker(), http=http_settings)).connectors()
    assert worker.asked[0][1] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize(
    ("status", "content", "expected"),
    [
        (401, b"", AuthenticationFailed),
        (403, b"no", AuthorizationFailed),
        (500, b"oops", OperationFailed),
        (200, b"<html>", OperationFailed),
    ],
)
def test_refusals(worker, status, content, expected):
    with pytest.raises(expected):
        Connect(connection(worker(status, content))).connectors()


def test_nobody_answers(worker):
    with pytest.raises(Unreachable, match=r"no Connect worker answers at http://127\.0\.0\.1:1$") as caught:
        Connect(connection("http://me:secret@127.0.0.1:1")).connectors()
    assert "secret" not in str(caught.value.as_json())
    with pytest.raises(Unreachable, match="no Connect worker is known"):
        Connect(connection()).connectors()


def test_a_worker_that_does_not_answer(worker):
    release = threading.Event()
    slow = Connection(("b:1",), connect_urls=(worker(wait=release),), timeout=0.3)
    with pytest.raises(TimedOut):
        Connect(slow).connectors()
    release.set()
