"""Secret settings of connectors: how to recognize and how to hide them. Pure.

A setting is a secret when its plugin says so (Connect's type PASSWORD), by its name, or by the shape of its value. A reference such
as ``${file:/run/db:password}`` is not a secret: only Connect's workers resolve it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Iterable, Mapping

from kops.core.secret_shapes import HIDDEN, is_secret_name, secrets_in, without_secrets

_REFERENCE = re.compile(r"\$\{[^}:]+:[^}]*\}")
_SHORTEST = 3
"""Shorter secrets are not searched for in texts: they occur in too many words."""
_SHORTEST_LINE = 16
"""Shorter lines of a multi-line secret are not searched for on their own."""


def has_reference(text: str) -> bool:
    """Whether a value contains something that Connect's workers resolve."""
    return bool(_REFERENCE.search(text))


def hidden_names(config: Mapping[str, str], passwords: Collection[str] = ()) -> set[str]:
    """Return the settings whose whole value is hidden.

    :param passwords: settings that the plugin declares as secrets
    """
    return {
        name
        for name, value in config.items()
        if value and (name in passwords or is_secret_name(name)) and not _REFERENCE.fullmatch(value.strip())
    }


def masked(config: Mapping[str, str], passwords: Collection[str] = ()) -> dict[str, str]:
    """Return a configuration that is safe to show, sorted by name: secrets are hidden, including those inside addresses and headers."""
    hidden = hidden_names(config, passwords)
    return {name: HIDDEN if name in hidden else without_secrets(value, has_reference) for name, value in sorted(config.items())}


def is_masked(name: str, config: Mapping[str, str], passwords: Collection[str] = ()) -> bool:
    """Whether any part of a setting's value is hidden when it is shown."""
    return masked({name: config[name]}, passwords)[name] != config[name]


def secret_texts(config: Mapping[str, str], passwords: Collection[str] = ()) -> set[str]:
    """Return the secrets that are written out in a configuration."""
    found = {config[name] for name in hidden_names(config, passwords)}
    for value in config.values():
        found |= {secret for secret in secrets_in(value) if not has_reference(secret)}
    found |= {line for text in found for line in text.splitlines() if len(line) >= _SHORTEST_LINE}  # as a stack trace quotes a key
    return {text for text in found if len(text) >= _SHORTEST}


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Remove secrets from a text such as an error or a stack trace."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return without_secrets(text, has_reference)


def digest(value: object, key: bytes) -> str:
    """Return a keyed digest: only those with the key can tell whether a value is the same."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
