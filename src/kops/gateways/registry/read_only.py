"""A schema registry as a program may have it that is run again: to read. kops stands between, and lets nothing through that changes it.

Registering a schema becomes looking it up: the id of one that is there is the answer that the registry would give too.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from kops.config.http import http_session, no_login
from kops.core.bounded_json import bounded_json
from kops.core.errors import KopsError, OperationFailed
from kops.core.schemas.read_only import judge_request
from kops.core.streams.registries import Origin
from kops.gateways.http import HttpAnswer
from kops.gateways.registry.client import ACCEPT, sent, without_credentials

_ASKED = (
    "Accept",
    "Content-Type",
    "Authorization",
    "target-sr-cluster",
    "Confluent-Identity-Pool-Id",
    "Confluent-Accept-Unknown-Properties",
)
"""What is passed on of a request's headers."""
_LOOK_SECONDS = 0.1
_IDLE_SECONDS = 120
_MOST_BYTES = 64 << 20
_TLS = b"\x16"
"""The first byte of a client that speaks TLS."""
_OK, _BAD, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 400, 401, 403, 404
_REFUSED_CODE = 40301
_NOT_THERE = (40401, 40403)
"""Of the registry's API: no such subject, no such schema."""


@dataclass(frozen=True)
class Upstream:
    """A registry that a program asks through kops.

    :param bases: what the paths of its API begin with
    :param request: settings of each request to it, for ``requests``
    """

    origin: Origin
    bases: tuple[str, ...]
    request: Mapping[str, Any] = field(repr=False)


class ReadOnlyRegistry:
    """Answers at a port of its own for a registry, until it is closed.

    :param listening: the port
    :param path: what the path of each request begins with, by which kops knows who may ask; empty: all who reach the port
    """

    def __init__(self, upstream: Upstream, listening: socket.socket, path: str = "") -> None:
        self.upstream, self.path = upstream, path
        self.refusal: KopsError | None = None
        """What the program would have changed first."""
        self.failure: KopsError | None = None
        """Why the last request got no answer that helps; None: it got one, or there was none."""
        self.answered = False
        self._session = http_session()
        self._session.headers.clear()
        self._server = _Server(self, listening)
        Thread(target=self._server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.socket.getsockname()[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._session.close()

    def failed(self, error: KopsError) -> None:
        self.failure, self.answered = error, False

    def refused(self, what: str) -> None:
        if self.refusal is None:
            self.refusal = OperationFailed(
                f"the program {what} at {self.upstream.origin.url}, and kops lets it change no registry",
                hint="if a schema is missing there, such as one that was deleted, register it first: kops schemas register",
            )

    def sent(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Pass a request on; return the registry's answer.

        :raises KopsError: when there is none
        """
        given = {"Accept": ACCEPT, **headers}
        login = no_login if "Authorization" in headers else self.upstream.request.get("auth", no_login)
        settings = {**self.upstream.request, "headers": given, "data": body or None, "auth": login}
        url = self.upstream.origin.url
        try:
            answer = sent(self._session, method, url + target, url, settings)
        except KopsError as error:
            self.failed(error)
            raise
        self.failure, self.answered = None, True
        if answer.status_code in (_UNAUTHORIZED, _FORBIDDEN):
            hint = (
                "kops passes on what the program sends, and else registry_username of the context, where its registry_url is this registry"
            )
            self.failed(OperationFailed(f"the schema registry at {url} refused the program ({answer.status_code})", hint=hint))
        if answer.is_redirect:
            there = without_credentials(str(answer.headers.get("Location", "")))
            self.failed(OperationFailed(f"the schema registry at {url} points to {there}", hint="name that one in the program's settings"))
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, registry: ReadOnlyRegistry, listening: socket.socket) -> None:
        self.registry = registry
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the program has gone, or hears that it was not answered."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server: _Server

    def handle(self) -> None:
        registry = self.server.registry
        if self.connection.recv(1, socket.MSG_PEEK) == _TLS:
            url = registry.upstream.origin.url
            registry.failed(
                OperationFailed(
                    f"the program's code names the schema registry {url}, which kops can only stand for where settings name it",
                    hint="give the serdes schema.registry.url of the program's settings, or leave out --no-network",
                )
            )
            return
        super().handle()

    def _answer(self) -> None:
        registry, length = self.server.registry, self.headers.get("Content-Length", "0")
        if self.headers.get("Transfer-Encoding") or not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True
            self._write(_BAD, _error(_BAD, "kops takes requests of a known length"))
            return
        body, target = self.rfile.read(int(length)), self.path
        if registry.path:
            if not target.startswith(f"{registry.path}/"):
                self._write(_NOT_FOUND, _error(_NOT_FOUND, "not found"))
                return
            target = target.removeprefix(registry.path)
        found = judge_request(self.command, target, registry.upstream.bases)
        if not found.passes and found.look_up is None:
            registry.refused(f"asked for a change, {self.command} {target.partition('?')[0]}, of the schema registry")
            self._write(_FORBIDDEN, _error(_REFUSED_CODE, f"kops lets a program only read: {self.command}"))
            return
        headers = {name: value for name in _ASKED if (value := self.headers.get(name)) is not None}
        try:
            answer = registry.sent(self.command, found.look_up or target, headers, body)
        except KopsError:
            self.close_connection = True  # without an answer, as from a registry that is down: clients then try the next one
            return
        if found.look_up is None:
            self._write(answer.status_code, answer.content, answer.headers.get("Content-Type"))
        elif _is_not_there(answer.status_code, answer.content):
            registry.refused(f"would register a schema under the subject {found.subject}, which does not have it, in the schema registry")
            self._write(
                _FORBIDDEN, _error(_REFUSED_CODE, f"kops registers no schema, and the subject {found.subject} does not have this one")
            )
        elif answer.status_code == _OK:
            self._write(_OK, _id_of(answer.content), answer.headers.get("Content-Type"))
        else:
            self._write(answer.status_code, answer.content, answer.headers.get("Content-Type"))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _answer  # noqa: N815 - names of http.server

    def _write(self, status: int, content: bytes, kind: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the output is kops' own."""


def _error(code: int, message: str) -> bytes:
    return json.dumps({"error_code": code, "message": message}).encode()


def _id_of(content: bytes) -> bytes:
    """Return the answer to registering a schema: the id in the answer to looking it up."""
    found = _object(content)
    return json.dumps({"id": found["id"]}).encode() if "id" in found else content


def _is_not_there(status: int, content: bytes) -> bool:
    """Whether a registry says that a subject, or a schema under it, does not exist."""
    return status == _NOT_FOUND and _object(content).get("error_code") in _NOT_THERE


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = bounded_json(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
