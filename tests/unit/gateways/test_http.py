"""Answers that never end, are huge, or nested without end: each ends with an error, in time and in bounded memory."""

import gzip
import http.server
import threading
from contextlib import contextmanager

import pytest
import requests

from kops.gateways import http as bounded
from kops.gateways.http import AnswerTooLarge, conforming, exchange


@contextmanager
def server(write):
    """Run a server that answers each request by ``write(handler)``; yield its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            try:
                write(self)
            except OSError:  # the client has gone
                self.close_connection = True

        def log_message(self, *_):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


def begin(handler, length, **headers):
    handler.send_response(200)
    for name, value in {"Content-Length": str(length), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


@pytest.mark.parametrize("where", ["body", "headers"])
def test_an_answer_that_trickles_ends_with_the_time_of_the_request(where):
    over = threading.Event()

    def trickle(handler):
        if where == "body":
            begin(handler, 1 << 20)
        while not over.wait(0.05):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    with server(trickle) as url, pytest.raises(requests.Timeout):
        exchange(requests.Session(), "GET", url, timeout=0.5)
    over.set()


def test_an_answer_larger_than_the_limit_is_not_held(monkeypatch):
    monkeypatch.setattr(bounded, "MOST_BYTES", 1 << 20)

    def pour(handler):
        begin(handler, 1 << 40)
        while True:
            handler.wfile.write(b"x" * 65536)

    with server(pour) as url, pytest.raises(AnswerTooLarge, match="more than 1 MiB"):
        exchange(requests.Session(), "GET", url, timeout=60)


def test_the_limit_counts_decompressed_bytes(monkeypatch):
    monkeypatch.setattr(bounded, "MOST_BYTES", 1 << 20)
    packed = gzip.compress(b"0" * (64 << 20))

    def bomb(handler):
        begin(handler, len(packed), Content_Encoding="gzip")
        handler.wfile.write(packed)

    with server(bomb) as url, pytest.raises(AnswerTooLarge):
        exchange(requests.Session(), "GET", url, timeout=60)


def test_deep_nesting_is_not_json():
    for depth, deep in ((100_000, True), (900, True), (200, False)):
        answer = bounded.HttpAnswer(200, {}, b"[" * depth + b"]" * depth)
        if deep:
            with pytest.raises(ValueError, match="nested deeper than 200 levels"):
                answer.json()
        else:
            answer.json()


@pytest.mark.parametrize(
    ("value", "shape", "wrong"),
    [
        ({"a": 1}, {"a": str}, "a is not a text"),
        ({"a": True}, {"a": int}, "a is not a whole number"),
        ({"a": [{"b": 1}, {}]}, {"a": [{"b": int}]}, r"a\[1\].b is not a whole number"),
        ([], {"a": str}, "the answer is not an object"),
        ({"x": {"level": 1}}, {"*": {"level": str}}, "x.level is not a text"),
        ({"a": None}, {"a": str}, "a is not a text"),
        ({"a": None}, {"a?": str}, None),
        ({"a": 1, "b": 2}, {"b": int, "c?": str}, None),
        ({"a": [1, "x", None]}, {"a": list}, None),
    ],
)
def test_shapes(value, shape, wrong):
    if wrong is None:
        assert conforming(value, shape) is value
    else:
        with pytest.raises(TypeError, match=wrong):
            conforming(value, shape)
