"""OAUTHBEARER tokens that a command prints."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass

from kops.config.secrets import run_command

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
