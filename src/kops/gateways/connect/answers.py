"""Answers of workers: JSON of the expected format, Connect's errors, and errors of proxies in between.

An unexpected answer becomes an error that shows it, never a KeyError later.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from kops.core.errors import AuthenticationFailed, AuthorizationFailed, KopsError, NotFound, OperationFailed, StateMoved, TimedOut
from kops.core.secret_shapes import without_login
from kops.gateways.http import HttpAnswer, Shape, conforming

_LONGEST_BODY = 120
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _METHOD, _CONFLICT, _BAD, _REDIRECT = 401, 403, 404, 405, 409, 400, 300
_GATEWAYS = (502, 503, 504)
_LONGEST = 300
_IS_REBALANCING = ("rebalanc", "stale configuration", "no known leader", "config offset", "not ready")
_REBALANCE_DUE = "because a rebalance is expected"
"""``RebalanceNeededException``, raised before anything is done: a 409, or a 500 where the request waits for no other worker."""
_LOST_LEADER = ("IO Error trying to forward REST request", "Cannot complete request because of a conflicting operation")
_TOO_SLOW = "Request timed out"


class RetryLater(Exception):
    """The request may be retried later.

    :param refused: whether it is certain that nothing was executed
    """

    def __init__(self, error: KopsError, *, refused: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.refused = refused


def body_of(url: str, answer: HttpAnswer) -> Any:
    """Return the JSON of an answer; None if it is empty.

    :param url: without credentials
    :raises RetryLater: when Connect is rebalancing
    :raises KopsError: when it is an error, or not JSON
    """
    status = answer.status_code
    if status == _UNAUTHORIZED:
        raise AuthenticationFailed(f"Connect at {url} requires a login", hint="set connect_username and connect_password_file")
    if status == _FORBIDDEN:
        raise AuthorizationFailed(f"Connect at {url} denies access: {short_message(answer)}")
    body, is_json = _json(answer)
    if _REDIRECT <= status < _BAD:
        where = without_login(answer.headers.get("Location", "elsewhere")).split("?")[0]
        raise OperationFailed(f"the server at {url} is not Connect: it redirects to {where}", hint="check connect_urls of the context")
    if status >= _BAD:
        raise _refusal(url, status, short_message(answer), from_connect=_is_connects(body))
    if not is_json:
        message = short_message(answer)
        raise OperationFailed(
            f"the server at {url} is not Connect: the answer is not JSON{f' but {message!r}' if message else ''}",
            hint="check connect_urls of the context",
        )
    return body


def _is_connects(body: Any) -> bool:
    """Whether an error is Connect's own (``ErrorMessage``); its HTTP server answers in JSON too, such as 404 while a worker starts."""
    return isinstance(body, dict) and "error_code" in body and "message" in body


def _json(answer: HttpAnswer) -> tuple[Any, bool]:
    if not answer.content:
        return None, True
    try:
        return answer.json(), True
    except ValueError:
        return None, False


def _refusal(url: str, status: int, message: str, *, from_connect: bool) -> Exception:
    """Return the error for a rejected request: by its message if Connect wrote it, otherwise by its status."""
    details: dict[str, Any] = {"status": status}
    if not from_connect:
        in_place = f"something other than Connect answers {status} at {url}{f': {message}' if message else ''}"
        hint = "probably a proxy that cannot reach its workers" if status in _GATEWAYS else "check connect_urls of the context"
        hint = "a worker that is starting answers so too; check connect_urls of the context" if status == _NOT_FOUND else hint
        return OperationFailed(in_place, hint=hint, said=message, **details)
    if _REBALANCE_DUE in message or (status == _CONFLICT and any(sign in message.lower() for sign in _IS_REBALANCING)):
        return RetryLater(StateMoved(f"Connect is rebalancing: {message}", hint="try again in a moment", **details), refused=True)
    if any(sign in message for sign in _LOST_LEADER):
        return RetryLater(
            OperationFailed(f"Connect cannot reach its leader: {message}", hint="a worker may be down", **details), refused=False
        )
    if _TOO_SLOW in message:
        return TimedOut(f"Connect at {url} gave up: {message}", hint="`kops connect status` shows the outcome", **details)
    known = {
        _CONFLICT: StateMoved(f"Connect refused: {message}", **details),
        _NOT_FOUND: NotFound(f"Connect: {message}", hint="`kops connect list` shows the connectors", **details),
        _METHOD: OperationFailed(f"this Connect does not support that: {message}", hint="it may be too old", **details),
    }
    return known.get(status, OperationFailed(f"Connect at {url} answers {status}: {message}", **details))


def short_message(answer: HttpAnswer) -> str:
    """Return the message of an answer on one short line: Connect's message, the title of a page, or its first words."""
    body, is_json = _json(answer)
    if is_json and isinstance(body, dict) and isinstance(body.get("message"), str):
        text = body["message"]
    else:
        title = re.search(r"<title[^>]*>(.*?)</title>", answer.text, re.IGNORECASE | re.DOTALL)
        text = html.unescape(title[1]) if title else re.sub(r"<[^>]*>", " ", answer.text)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def shaped(url: str, request: str, body: Any, shape: Shape) -> Any:
    """Return the JSON of an answer.

    :param url: without credentials
    :param request: method and path
    :param shape: see :data:`kops.gateways.http.Shape`
    :raises OperationFailed: when it does not have that shape
    """
    try:
        return conforming(body, shape)
    except TypeError as broken:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        shown = text if len(text) <= _LONGEST_BODY else f"{text[:_LONGEST_BODY]}..."
        raise OperationFailed(
            f"Connect at {url} answers {request} in an unexpected format: {shown}",
            hint="check connect_urls of the context; `kops connect workers` shows the version of each worker",
        ) from broken


_STATE: Shape = {"state?": str, "worker_id?": str, "trace?": str}
CONNECTOR: Shape = {
    "status?": {"connector?": _STATE, "tasks?": [{"id": int, **_STATE}], "type?": str},
    "info?": {"type?": str, "config?": {"*": str}},
}
"""An item of ``GET /connectors?expand=status&expand=info``."""
ABOUT: Shape = {"kafka_cluster_id": str, "version?": str, "commit?": str}
PLUGINS: Shape = [{"class": str, "type?": str, "version?": str}]
SETTINGS: Shape = [{"name": str}]
LOGGERS: Shape = {"*": {"level": str}}
OFFSETS: Shape = {"offsets?": [{"partition": dict, "offset?": dict}]}
"""Partitions and offsets are objects whose content is up to the plugin."""
VALIDATION: Shape = {"configs?": [{"definition": {"name": str}, "value?": {"name?": str, "errors?": [str], "recommended_values?": list}}]}


def is_shaped(body: Any, shape: Shape) -> bool:
    try:
        conforming(body, shape)
    except TypeError:
        return False
    return True


def message_of(body: Any) -> str:
    """Return Connect's ``message``; empty if there is none."""
    return str(body.get("message", "")) if isinstance(body, dict) else ""
