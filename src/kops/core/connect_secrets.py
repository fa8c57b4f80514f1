"""Settings of connectors that nobody may see: which they are, and how they are shown. Pure.

A setting is a secret when its plugin says so (Connect's type PASSWORD), or by its name. A reference such as ``${file:/run/db:password}``
is no secret: Connect's workers look it up, and nobody else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Iterable, Mapping

HIDDEN = "********"
_SECRET = re.compile(
    r"password|passwd|passphrase|secret|token|credential|private[._-]?key|access[._-]?key|account[._-]?key|api[._-]?key"
    r"|jaas\.config|auth\.user\.info|\bsas\b",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"[._-](file|path|location|url|uri|type|class|provider|enabled?|mechanism|id|name|field|policy)$", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{[^}:]+:[^}]*\}")
_LOGIN = re.compile(r"(?<=://)([^/@\s:]+):([^/@\s]+)(?=@)")
_IN_A_URL = re.compile(r"(?i)((?:password|passwd|pwd|secret|token|sslpassword)=)([^&;\s]+)")
_SHORTEST = 3
"""A shorter secret is not looked for in texts: it is part of half the words."""


def is_secret_name(name: str) -> bool:
    """Tell whether a setting's name says that its value is a secret."""
    return bool(_SECRET.search(name)) and not _NO_SECRET.search(name)


def has_reference(text: str) -> bool:
    """Tell whether a value has something that Connect's workers look up."""
    return bool(_REFERENCE.search(text))


def hidden_names(config: Mapping[str, str], passwords: Collection[str] = ()) -> set[str]:
    """Return the settings whose whole value is hidden.

    :param passwords: settings of which the plugin says that they are secrets
    """
    return {
        name
        for name, value in config.items()
        if value and (name in passwords or is_secret_name(name)) and not _REFERENCE.fullmatch(value.strip())
    }


def masked(config: Mapping[str, str], passwords: Collection[str] = ()) -> dict[str, str]:
    """Return a configuration as it may be shown: secrets hidden, passwords in addresses too, in the order of the names."""
    hidden = hidden_names(config, passwords)
    return {name: HIDDEN if name in hidden else _without_logins(value) for name, value in sorted(config.items())}


def _without_logins(value: str) -> str:
    text = _LOGIN.sub(lambda found: found[0] if has_reference(found[0]) else f"{found[1]}:{HIDDEN}", value)
    return _IN_A_URL.sub(lambda found: found[0] if has_reference(found[2]) else f"{found[1]}{HIDDEN}", text)


def is_masked(name: str, config: Mapping[str, str], passwords: Collection[str] = ()) -> bool:
    """Tell whether some of a setting's value is hidden when it is shown."""
    return masked({name: config[name]}, passwords)[name] != config[name]


def secret_texts(config: Mapping[str, str], passwords: Collection[str] = ()) -> set[str]:
    """Return the secrets that are written out in a configuration."""
    found = {config[name] for name in hidden_names(config, passwords)}
    for value in config.values():
        found |= {match[2] for match in (*_LOGIN.finditer(value), *_IN_A_URL.finditer(value)) if not has_reference(match[2])}
    return {text for text in found if len(text) >= _SHORTEST}


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Return a text, such as an error or a stack trace, without the secrets in it."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _without_logins(text)


def digest(value: object, key: bytes) -> str:
    """Return what tells whether a value is the same, to those who have the key only."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
