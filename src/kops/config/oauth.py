"""OAUTHBEARER tokens: those that a command prints, and those of a token endpoint for a client that does not ask it itself."""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.config.secrets import run_command
from kops.core.errors import AuthenticationFailed

OPAQUE_LIFETIME = 300.0
"""Assumed lifetime in seconds of a token that does not state when it expires."""


@dataclass(frozen=True)
class TokenCommand:
    """librdkafka's ``oauth_cb``. A dataclass rather than a closure, so that Spark can send it to its tasks.

    :param command: prints a token; run without a shell
    """

    command: str

    def __call__(self, _config: str = "") -> tuple[str, float]:
        """Return a token and when it expires, in seconds since the epoch.

        :raises kops.core.errors.ConfigError: if the command fails
        """
        token = run_command(self.command).strip()
        return token, expiry(token, time.time())


ENDPOINT = (
    *("sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"),
    *("sasl.oauthbearer.scope", "sasl.oauthbearer.extensions", "https.ca.location"),
)
"""librdkafka's properties of a token endpoint that :func:`token_of` and :func:`extensions_of` keep to."""
_ENDPOINT_SECONDS = 30.0


def token_of(settings: Mapping[str, Any]) -> str:
    """Return a token as librdkafka gets it: from its ``oauth_cb``, or from a token endpoint (RFC 6749, 4.4, with HTTP Basic).

    :param settings: librdkafka's, secrets included
    :raises kops.core.errors.ConfigError: if the command fails
    :raises AuthenticationFailed: if the endpoint gives no token
    """
    if command := settings.get("oauth_cb"):
        return str(command("")[0])
    import requests

    from kops.config.http import http_session

    url, scope = settings["sasl.oauthbearer.token.endpoint.url"], settings.get("sasl.oauthbearer.scope")
    login = ":".join(str(settings.get(f"sasl.oauthbearer.client.{part}") or "") for part in ("id", "secret")).encode()
    form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    try:
        with http_session() as session:
            answer = session.post(
                url,
                data=form,
                headers={"Authorization": f"Basic {base64.b64encode(login).decode()}"},  # requests would send it as Latin-1
                timeout=_ENDPOINT_SECONDS,
                verify=settings.get("https.ca.location") or True,
                allow_redirects=False,
            )
            answer.raise_for_status()
            return str(answer.json()["access_token"])
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise AuthenticationFailed(
            f"{url} gives no token: {error}", hint="check oauth_token_url, oauth_client_id and the secret of this context"
        ) from error


def extensions_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what librdkafka sends with a token: ``name=value`` pairs with commas between them."""
    pairs = str(settings.get("sasl.oauthbearer.extensions") or "").split(",")
    return {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs) if name.strip()}


def expiry(token: str, now: float) -> float:
    """Return when a token expires, in seconds since the epoch.

    :param token: a JWT (RFC 7519), whose signature is not checked, because that is the broker's task; or an opaque token
    :param now: seconds since the epoch
    """
    try:
        _header, payload, _signature = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        return now + OPAQUE_LIFETIME
