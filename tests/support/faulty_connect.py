"""A small HTTP server that answers as Connect might on a bad day: each answer is written down beforehand."""

import contextlib
import http.server
import json
import socket
import ssl
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.patience import HANG_SECONDS

REBALANCING = {"error_code": 409, "message": "Cannot complete request momentarily due to stale configuration"}
HANG_UP, SLEEP = "hang up", "sleep"


@dataclass
class Answer:
    """What a request is answered with.

    :param body: JSON, or bytes as they are; HANG_UP closes the connection, SLEEP never answers
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else b"" if self.body is None else json.dumps(self.body).encode()


class FaultyWorker:
    """One such server.

    :param answers: given in their order, the last one for ever
    :param certificate: PEM with its key: it speaks TLS then
    """

    def __init__(self, *answers: Answer, certificate: Path | None = None) -> None:
        self._answers = deque(answers)
        self.asked: list[str] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self._over = threading.Event()
        self._connections: list[socket.socket] = []
        worker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                worker.bodies.append(json.loads(self.rfile.read(length)) if length else None)
                worker.asked.append(f"{self.command} {self.path}")
                worker.headers.append(dict(self.headers))
                answer = worker._answers.popleft() if len(worker._answers) > 1 else worker._answers[0]
                if answer.body in (HANG_UP, SLEEP):
                    if answer.body == SLEEP:
                        worker._over.wait(HANG_SECONDS)
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                headers = {"Content-Type": "text/html" if isinstance(answer.body, bytes) else "application/json", **answer.headers}
                for name, value in {**headers, "Content-Length": str(len(answer.content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.content)

            do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815 - as the class asks for them

            def setup(self) -> None:
                super().setup()
                worker._connections.append(self.connection)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self._server.server_port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """End it, as a worker that dies."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def faulty_worker():
    """Start such servers: ``faulty_worker(Answer(409, REBALANCING), Answer(200, {}))``."""
    started: list[FaultyWorker] = []

    def start(*answers: Answer, certificate: Path | None = None) -> FaultyWorker:
        started.append(FaultyWorker(*answers, certificate=certificate))
        return started[-1]

    yield start
    for worker in started:
        worker.stop()


def expanded(name: str, *tasks: str, state: str = "RUNNING", kind: str = "sink", trace: str = "", config: Any = None) -> dict[str, Any]:
    """Return a connector as an item of ``GET /connectors?expand=status&expand=info``."""
    shown = [
        {"id": number, "state": one, "worker_id": "w:8083", **({"trace": trace} if one == "FAILED" else {})}
        for number, one in enumerate(tasks)
    ]
    status = {"name": name, "connector": {"state": state, "worker_id": "w:8083"}, "tasks": shown, "type": kind}
    return {"status": status, "info": {"name": name, "config": config or {"connector.class": "a.B", "name": name}, "type": kind}}
