"""OAUTHBEARER tokens that a command prints."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass

from kops.config.secrets import run_command

OPAQUE_LIFETIME = 300.0
"""Seconds that a token is taken to live when it does not say so itself."""


@dataclass(frozen=True)
class TokenCommand:
    """librdkafka's ``oauth_cb``. A dataclass and no closure, so that Spark can send it to its tasks.

    :param command: prints a token; run without a shell
    """

    command: str

    def __call__(self, _config: str = "") -> tuple[str, float]:
        """Return a token and when it expires, in seconds since the epoch.

        :raises kops.core.errors.ConfigError: when the command fails
        """
        token = run_command(self.command).strip()
        return token, expiry(token, time.time())


def expiry(token: str, now: float) -> float:
    """Return when a token expires, in seconds since the epoch.

    :param token: a JWT (RFC 7519), read without checking its signature: that is the broker's part; or an opaque one
    :param now: seconds since the epoch
    """
    try:
        _header, payload, _signature = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        return now + OPAQUE_LIFETIME
