"""Requests to the workers of a Connect cluster, with failover to another worker and retries during rebalances.

Each worker answers for the whole cluster: it forwards requests to its leader. So a request goes to the worker that answered last,
then to the others. A request that may have been executed is retried only if it is idempotent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from kops.config.connection import Connection
from kops.config.http import http_session, http_settings
from kops.core.errors import KopsError, OperationFailed, TimedOut, Unreachable
from kops.core.permit import ALWAYS, Permit
from kops.core.secret_shapes import without_login
from kops.gateways.connect.answers import RetryLater, body_of
from kops.gateways.http import AnswerTooLarge, HttpAnswer, exchange

_JSON = {"Accept": "application/json"}
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 2.0
_LONG_AGO = 5.0
_LEAST_SECONDS = 0.001
_BROKEN = 500
_VALIDATION = "/config/validate"
OUTCOME_UNKNOWN = "it may have been executed: `kops connect status` shows the outcome"

Notify = Callable[[str], None]
"""Receives a sentence for the user."""


class Workers:
    """The workers of a connection, queried over one HTTP session."""

    def __init__(self, connection: Connection, notify: Notify | None = None, permit: Permit = ALWAYS) -> None:
        self._permit = permit
        self._urls = [url.rstrip("/") for url in connection.connect_urls]
        self._settings = http_settings(connection, "connect")
        self._patience: float = self._settings["timeout"]
        self._notify = notify or _ignore
        self._session: Any = None
        self._notified: dict[str, float] = {}

    def ask(
        self, method: str, path: str, *, parameters: Mapping[str, Any] | None = None, body: Any = None, repeatable: bool = True
    ) -> tuple[str, Any]:
        """Return the address of the worker that answered, and the JSON of its answer; None if it is empty.

        While Connect rebalances (409) or has no leader, the request is retried for as long as one request may take.

        :param repeatable: whether the request is idempotent
        :raises Unreachable: when no worker answers
        :raises TimedOut: when none answers in time; the outcome of a request that is not repeatable is unknown
        :raises KopsError: when a worker reports an error
        """
        if method != "GET" and not path.endswith(_VALIDATION):
            self._permit.require(f"{method} {path}")
        deadline, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                return self._ask_one(method, path, {"params": parameters, "json": body}, deadline, repeatable=repeatable)
            except RetryLater as retry:
                if time.monotonic() + wait > deadline or not (repeatable or retry.refused):
                    raise retry.error from retry
                self._notify_once(f"{retry.error.message}; retrying for up to {self._patience:g} s")
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _notify_once(self, text: str) -> None:
        """Report why a request is repeated, once for all requests in flight."""
        now = time.monotonic()
        if now - self._notified.get(text, -_LONG_AGO) > _LONG_AGO:
            self._notify(text)
        self._notified[text] = now

    def _ask_one(self, method: str, path: str, given: Mapping[str, Any], deadline: float, *, repeatable: bool) -> tuple[str, Any]:
        """Return the first answer that any worker gives. If it is idempotent, each may take its share of the time that is left.

        :param given: for ``requests``
        :param deadline: by the monotonic clock
        :raises RetryLater: during a rebalance or without a leader
        """
        last: KopsError = Unreachable("no Connect worker is known", hint="set connect_urls in the context, or KOPS_CONNECT_URLS")
        for at, url in enumerate(self._urls):
            shown = without_login(url)
            try:
                left = max(deadline - time.monotonic(), _LEAST_SECONDS)
                timeout = left / (len(self._urls) - at) if repeatable else left
                answer = self._send(method, url, path, {**given, "timeout": timeout}, repeatable=repeatable)
                found = body_of(shown, answer)
            except _TryNextWorker as next_worker:
                last = next_worker.error
                if at + 1 < len(self._urls):
                    self._notify_once(f"{last.message}; trying the next worker")
            else:
                if self._urls[0] != url:
                    # a new list, because other threads may be iterating
                    self._urls = [url, *(other for other in self._urls if other != url)]
                return url, found
        raise last

    def _send(self, method: str, url: str, path: str, given: Mapping[str, Any], *, repeatable: bool) -> HttpAnswer:
        """Send one request.

        :param given: for ``requests``
        :raises _TryNextWorker: when another worker may be tried
        """
        import requests

        if self._session is None:
            self._session = http_session()
            self._session.headers.update(_JSON)
        shown = without_login(url)
        try:
            answer = exchange(self._session, method, f"{url}{path}", **{**self._settings, **given})
        except AnswerTooLarge as error:
            raise OperationFailed(f"Connect at {shown}: {error}", hint="check connect_urls of the context") from error
        except requests.exceptions.ConnectTimeout as error:
            raise _TryNextWorker(_no_answer(shown, given["timeout"])) from error
        except requests.Timeout as error:
            raise _after_sending(_no_answer(shown, given["timeout"]), repeatable=repeatable) from error
        except requests.ConnectionError as error:
            if _was_sent(error):
                cut_off = f"Connect at {shown} closed the connection before answering"
                raise _after_sending(Unreachable(cut_off, hint="see its log"), repeatable=repeatable) from error
            raise _TryNextWorker(Unreachable(f"no Connect worker answers at {shown}", hint=_hint(error))) from error
        except requests.RequestException as error:
            raise OperationFailed(f"request to Connect failed at {shown}: {type(error).__name__}", hint="check connect_urls") from error
        if is_foreign(answer) and (len(self._urls) > 1 or not repeatable):
            try:
                body_of(shown, answer)
            except KopsError as error:
                raise (_after_sending(error, repeatable=repeatable) if answer.status_code >= _BROKEN else _TryNextWorker(error)) from error
        return answer


def is_foreign(answer: HttpAnswer) -> bool:
    """Whether something other than a worker answered: a proxy's error page, a login page, another service."""
    kind = answer.headers.get("Content-Type", "")
    return bool(answer.content) and "json" not in kind and answer.status_code not in (401, 403)


class _TryNextWorker(Exception):
    """One worker does not answer; another one may be tried."""

    def __init__(self, error: KopsError) -> None:
        self.error = error


def _after_sending(error: KopsError, *, repeatable: bool) -> Exception:
    """Classify a lost answer: try another worker, or report that the outcome is unknown."""
    return _TryNextWorker(error) if repeatable else TimedOut(error.message, hint=OUTCOME_UNKNOWN)


def _no_answer(url: str, seconds: float) -> TimedOut:
    return TimedOut(f"Connect at {url} did not answer within {seconds:.3g} s", hint="increase --timeout")


def _was_sent(error: Exception) -> bool:
    """Whether the connection broke after the request was sent, so that the worker may have executed it."""
    text = str(error)
    return "Connection aborted" in text or "RemoteDisconnected" in text or "Connection broken" in text or "IncompleteRead" in text


def _hint(error: Exception) -> str:
    """Return why a worker is unreachable, without the nesting of the HTTP library."""
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "its certificate is not trusted: set http_ca_file"
    if "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
        return "it does not speak TLS: try http:// in connect_urls"
    return "check connect_urls, and that the workers are running"


def _ignore(_text: str) -> None: ...
