"""Connect on a bad day: what is asked again, of whom, and what is reported when nothing helps."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from kops.config.connection import Connection, Http, Secret
from kops.core.errors import AuthenticationFailed, KopsError, NotFound, OperationFailed, StateMoved, TimedOut, Unreachable
from kops.gateways.connect import Connect
from support.faulty_connect import HANG_UP, REBALANCING, SLEEP, Answer, faulty_worker
from support.patience import HANG_SECONDS

__all__ = ["faulty_worker"]
PROXY = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
LOST_LEADER = {"error_code": 500, "message": "IO Error trying to forward REST request: Connection refused"}


@pytest.fixture
def connect():
    """Make a client whose words are kept: ``connect(worker, worker)``."""

    def make(*workers, timeout=HANG_SECONDS):
        urls = tuple(worker if isinstance(worker, str) else worker.url for worker in workers)
        return Connect(Connection(("b:1",), connect_urls=urls, timeout=timeout), make.said.append)

    make.said = []
    return make


def test_rebalance_is_retried_and_reported_once(faulty_worker, connect):
    worker = faulty_worker(Answer(409, REBALANCING), Answer(409, REBALANCING), Answer(200, {}))
    assert connect(worker).connectors() == ()
    assert len(worker.asked) == 3
    (said,) = connect.said
    assert "Connect is rebalancing: Cannot complete request momentarily" in said


def test_a_rebalance_that_is_due_is_retried(faulty_worker, connect):
    due = {"error_code": 500, "message": "Request cannot be completed because a rebalance is expected"}
    worker = faulty_worker(Answer(500, due), Answer(200, {}))
    connect(worker).put("c", {})
    assert len(worker.asked) == 2


def test_endless_rebalance_fails(faulty_worker, connect):
    worker = faulty_worker(Answer(409, REBALANCING))
    with pytest.raises(StateMoved, match="Connect is rebalancing") as refused:
        connect(worker, timeout=2.0).put("c", {})
    assert refused.value.details == {"status": 409}


def test_other_conflicts_are_not_retried(faulty_worker, connect):
    worker = faulty_worker(Answer(409, {"error_code": 409, "message": "Connector c already exists"}))
    with pytest.raises(StateMoved, match="already exists"):
        connect(worker).create("c", {}, "STOPPED")
    assert len(worker.asked) == 1


def test_lost_leader_is_retried_only_if_idempotent(faulty_worker, connect):
    worker = faulty_worker(Answer(500, LOST_LEADER), Answer(200, {"name": "c"}))
    connect(worker).put("c", {"a": "b"})
    assert worker.asked == ["PUT /connectors/c/config"] * 2
    worker = faulty_worker(Answer(500, LOST_LEADER))
    with pytest.raises(OperationFailed, match="cannot reach its leader"):
        connect(worker).restart("c")
    assert worker.asked == ["POST /connectors/c/restart?includeTasks=true&onlyFailed=false"]


def test_next_worker_is_tried_and_preferred_later(faulty_worker, connect):
    good = faulty_worker(Answer(200, {}))
    client = connect("http://127.0.0.1:1", good)
    client.connectors()
    client.connectors()
    assert len(connect.said) == 1
    assert "no Connect worker answers at http://127.0.0.1:1; trying the next worker" in connect.said[0]
    assert len(good.asked) == 2


def test_worker_that_dies_between_requests(faulty_worker, connect):
    first, second = faulty_worker(Answer(200, {})), faulty_worker(Answer(200, {}))
    client = connect(first, second)
    client.connectors()
    first.stop()
    client.connectors()
    assert (len(first.asked), len(second.asked)) == (1, 1)


def test_worker_that_closes_connection(faulty_worker, connect):
    bad, good = faulty_worker(Answer(body=HANG_UP)), faulty_worker(Answer(200, {}))
    connect(bad, good).put("c", {})
    assert good.asked == ["PUT /connectors/c/config"]
    assert "closed the connection before answering" in connect.said[0]


def test_request_with_unknown_outcome_is_not_repeated(faulty_worker, connect):
    bad, good = faulty_worker(Answer(body=HANG_UP)), faulty_worker(Answer(202, {}))
    with pytest.raises(TimedOut, match="closed the connection") as unknown:
        connect(bad, good).restart("c")
    assert "it may have been executed" in unknown.value.hint
    page = faulty_worker(Answer(504, b"<title>504 Gateway Time-out</title>"))
    with pytest.raises(TimedOut, match="504 Gateway Time-out"):  # the proxy may have passed it on
        connect(page, good).restart("c")
    assert good.asked == []
    connect("http://127.0.0.1:1", good).restart("c")  # it never got there
    assert len(good.asked) == 1


@pytest.mark.slow
def test_silent_worker_times_out(faulty_worker, connect):
    silent, good = faulty_worker(Answer(body=SLEEP)), faulty_worker(Answer(200, {}))
    connect(silent, good, timeout=3.0).connectors()
    assert "did not answer within 1.5 s; trying the next worker" in connect.said[0]
    with pytest.raises(TimedOut, match="did not answer"):
        connect(silent, timeout=0.3).connectors()
    with pytest.raises(TimedOut) as unknown:
        connect(silent, good, timeout=0.3).restart_task("c", 0)
    assert "it may have been executed" in unknown.value.hint


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(502, PROXY), "something other than Connect answers 502 at http://127.0.0.1:PORT: 502 Bad Gateway"),
        (Answer(200, b"<html><title>Sign in</title></html>"), "is not Connect: the answer is not JSON but 'Sign in'"),
        (
            Answer(302, b"", {"Location": "https://me:pw@sso.example/login?next=x"}),
            "is not Connect: it redirects to https://sso.example/login",
        ),
        (Answer(200, b"{"), "is not Connect: the answer is not JSON"),
        (Answer(200, ["a", "b"]), "does not expand its list of connectors"),
        (Answer(500, {"error_code": 500, "message": "Request timed out"}), "gave up: Request timed out"),
        (Answer(500, {"error_code": 500, "message": "boom"}), "answers 500: boom"),
        (Answer(405, {"error_code": 405, "message": "HTTP 405"}), "this Connect does not support that"),
    ],
)
def test_invalid_answers_are_rejected(faulty_worker, connect, answer, said):
    worker = faulty_worker(answer)
    with pytest.raises(KopsError) as caught:
        connect(worker).connectors()
    assert said.replace("127.0.0.1:PORT", worker.url.removeprefix("http://")) in caught.value.message


def test_proxy_error_page_fails_over_to_next_worker(faulty_worker, connect):
    page, good = faulty_worker(Answer(503, PROXY)), faulty_worker(Answer(200, {}))
    connect(page, good).connectors()
    assert "502 Bad Gateway; trying the next worker" in connect.said[0]


def test_unreachable_worker(faulty_worker, connect):
    worker = faulty_worker(Answer(404, {"error_code": 404, "message": "No status found for connector c"}))
    with pytest.raises(NotFound, match="No status found for connector c"):
        connect(worker).connector("c")
    connect(worker).delete("c")  # gone is gone
    with pytest.raises(Unreachable, match="no Connect worker is known"):
        connect().connectors()


def test_session_is_shared_and_names_are_quoted(faulty_worker, connect):
    worker = faulty_worker(Answer(200, {"offsets": []}))
    connect(worker).offsets("a b/c?")
    assert worker.asked == ["GET /connectors/a%20b%2Fc%3F/offsets"]
    assert worker.headers[0]["Accept"] == "application/json"


@pytest.fixture
def certificate(tmp_path):
    """A certificate of 127.0.0.1 that signs itself, with its key."""
    if not shutil.which("openssl"):
        pytest.skip("needs the openssl command")
    file = tmp_path / "worker.pem"
    name = ("-subj", "/CN=worker", "-addext", "subjectAltName=IP:127.0.0.1")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        *name,
        "-keyout",
        file,
        "-out",
        tmp_path / "only.pem",
        "-days",
        "2",
    ]
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "only.pem").read_text())
    return file


def test_tls_and_basic_auth(faulty_worker, certificate):
    worker, said = faulty_worker(Answer(200, {}), certificate=certificate), []
    login = Http(ca_file=str(certificate), connect_username="me", connect_password=Secret("test", lambda: "hunter2"))
    trusting = Connection(("b:1",), connect_urls=(worker.url,), http=login, timeout=HANG_SECONDS)
    assert Connect(trusting, said.append).connectors() == ()
    assert worker.headers[0]["Authorization"] == "Basic bWU6aHVudGVyMg=="
    with pytest.raises(Unreachable) as untrusted:
        Connect(replace(trusting, http=Http())).connectors()
    assert untrusted.value.hint == "its certificate is not trusted: set http_ca_file"
    plain = faulty_worker(Answer(200, {}))
    with pytest.raises(Unreachable) as no_tls:
        Connect(replace(trusting, connect_urls=(plain.url.replace("http:", "https:"),))).connectors()
    assert "does not speak TLS" in no_tls.value.hint
    refused = faulty_worker(Answer(401, {"error_code": 401, "message": "no"}))
    with pytest.raises(AuthenticationFailed) as unknown:
        Connect(replace(trusting, connect_urls=(refused.url,))).connectors()
    assert "hunter2" not in str(unknown.value.as_json())
