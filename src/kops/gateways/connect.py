"""Kafka Connect, by its REST interface."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kops.config.connection import Connection
from kops.config.http import http_settings
from kops.core.connect import Connector, connector_of
from kops.core.errors import AuthenticationFailed, AuthorizationFailed, KopsError, OperationFailed, TimedOut, Unreachable

_JSON = {"Accept": "application/json"}
_WHO, _FORBIDDEN, _BAD = 401, 403, 400


class Connect:
    """The Connect workers of a connection; the first one that answers is asked."""

    def __init__(self, connection: Connection) -> None:
        self._urls = [url.rstrip("/") for url in connection.connect_urls]
        self._settings = http_settings(connection, "connect")

    def connectors(self) -> tuple[Connector, ...]:
        """Return every connector with its tasks and configuration.

        :raises Unreachable: when no worker answers
        :raises KopsError: when a worker refuses
        """
        url, body = self._get("/connectors", {"expand": ["status", "info"]})
        return tuple(connector_of(name, item, _shown(url)) for name, item in sorted(body.items()))

    def _get(self, path: str, parameters: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the answer of the first worker that can be reached, and its address."""
        import requests

        last: KopsError = Unreachable("no Connect worker is known", hint="set connect_urls in the context")
        for url in self._urls:
            shown = _shown(url)
            try:
                answer = requests.get(f"{url}{path}", params=parameters, headers=_JSON, **self._settings)  # noqa: S113 - it is a setting
            except requests.Timeout:
                last = TimedOut(
                    f"Connect at {shown} did not answer within {self._settings['timeout']:g} s", hint="--timeout gives more time"
                )
            except requests.ConnectionError as error:
                last = Unreachable(f"no Connect worker answers at {shown}", hint=_reason(error))
            except requests.RequestException as error:
                last = OperationFailed(f"could not ask Connect at {shown}: {type(error).__name__}")
            else:
                return url, _body(shown, answer)
        raise last


def _body(url: str, answer: Any) -> Any:
    """Return the JSON of an answer.

    :raises KopsError: when it is an error, or no JSON
    """
    if answer.status_code == _WHO:
        raise AuthenticationFailed(f"Connect at {url} wants to know who we are", hint="set connect_username and connect_password_file")
    if answer.status_code == _FORBIDDEN:
        raise AuthorizationFailed(f"Connect at {url} refuses: {answer.text[:200].strip()}")
    if answer.status_code >= _BAD:
        raise OperationFailed(f"Connect at {url} answers {answer.status_code}: {answer.text[:200].strip()}")
    try:
        return answer.json()
    except ValueError as error:
        raise OperationFailed(f"what answers at {url} is not Connect: it gives no JSON", hint="see connect_urls of the context") from error


def _shown(url: str) -> str:
    """Return an address without the login that somebody may have written into it."""
    return re.sub(r"//[^/@]*@", "//", url)


def _reason(error: Exception) -> str:
    """Return why a worker cannot be reached, without the nesting of the HTTP library."""
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "its certificate is not trusted: set http_ca_file"
    return "check connect_urls, and that the workers run"
