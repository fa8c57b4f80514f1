"""Recognizing secrets by the name of a setting and by the shape of a text: keys, credentials in addresses, tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

HIDDEN = "********"

_SECRET = re.compile(
    r"passw(?:or)?d|passphrase|passcode|(?:^|[._-])(?:pass|pwd|pw)(?:$|[._-])|secret|token(?!iz)|credential|authorization"
    r"|(?:private|access|account|api|encryption|signing|shared|master|hmac)[._-]?key|keystore[._-]?key(?:$|[._-])|ssl[._-]key[._-]pem"
    r"|jaas\.config|auth\.user\.info|\bsas\b|oauthbearer\.config$",
    re.IGNORECASE,
)
_IN_CAMELS = re.compile(r"[a-z](?:Pass|Pwd)(?![a-z])")
_NO_SECRET = re.compile(
    r"[._-](?:file|path|location|ur[il]|type|class|provider|enabled?|mechanism|id|name|fields?|columns?|policy|source"
    r"|bucket|size|capacity|rate|count|ms|seconds?|minutes?|hours?|days?|interval|timeout|retries|ttl|length|limit|max|min|expiry|lifetime"
    r"|duration|bytes|version|format|prefix|suffix|separator|delimiter|algorithm|alias|mode|strategy|topic|pattern|scope|audience|issuer)$",
    re.IGNORECASE,
)
"""Suffixes of settings that are about a secret but do not hold one: ``database.password.file``, ``token.bucket.size``."""

_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_ORACLE = re.compile(r"(?i)(jdbc:oracle:[a-z0-9]+:)([^/:@\s]*)/(\"[^\"]*\"|\S+)(?=@)")
_LOGIN = re.compile(r"(?<=://)([^/@\s:]*):((?:(?![,;|&=?\"'][a-zA-Z][\w+.-]*://)\S)+)(?=@)")
"""Matches up to the last ``@`` before the next address of a list: a password may contain ``://``."""
_ASSIGNED = re.compile(
    r"(?i)((?:password|passwd|passphrase|passcode|\bpass|\bpwd|secret|token|credential|accesskey|access_key|secretkey|secret_key|apikey"
    r"|api_key|accountkey|sharedaccesskey|sharedaccesssignature|privatekey|private_key|\bsig|x-amz-signature)[\"']?\s*=\s*)"
    r"(\{[^}]*\}|\"[^\"]*\"|'[^']*'|[^&;\s]+)"
)
_QUOTED = re.compile(
    r"(?i)([\"'][\w.-]*(?:password|passwd|passphrase|secret|token|(?:private|access|account|api)[._-]?key)[\"']\s*:\s*)"
    r"(\"(?:[^\"\\]|\\.)*\"|'[^']*')"
)
_HEADER = re.compile(
    r"(?i)((?:\bauthorization|\bcookie|\bx-[\w-]*(?:token|key|secret|auth))[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token|apikey|digest)\s+)?)"
    r"([^\s|\"']+)"
)
_BEARER = re.compile(r"(?i)(\bbearer\s+)(?=\S*[\d._~+/=-])([^\s,|\"']{8,})")


def is_secret_name(name: str) -> bool:
    return bool(_SECRET.search(name) or _IN_CAMELS.search(name)) and not _NO_SECRET.search(name)


def name_patterns() -> tuple[str, str, str]:
    """Return what :func:`is_secret_name` goes by, for Java: names of secrets, the same in camel case, names that only seem to be.

    The first and the last ignore case.
    """
    return _SECRET.pattern, _IN_CAMELS.pattern, _NO_SECRET.pattern


def without_secrets(text: str, kept: Callable[[str], bool] = lambda _: False) -> str:
    """Hide what looks like a secret by its shape.

    :param kept: whether to show a value although it looks like a secret, such as a reference
    """
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _ORACLE.sub(lambda found: found[0] if kept(found[3]) else f"{found[1]}{found[2]}/{HIDDEN}", text)
    text = _LOGIN.sub(lambda found: found[0] if kept(found[0]) else f"{found[1]}:{HIDDEN}", text)
    for shape in (_ASSIGNED, _QUOTED, _HEADER, _BEARER):
        text = shape.sub(lambda found: found[0] if kept(found[2]) else f"{found[1]}{HIDDEN}", text)
    return text


def without_secret_words(command: Sequence[str]) -> list[str]:
    """Hide the words of a command that follow a flag whose name is a secret's, such as ``--password``."""
    before = ["", *command]
    return [
        HIDDEN if flag.startswith("-") and "=" not in flag and is_secret_name(flag) else word
        for flag, word in zip(before, command, strict=False)
    ]


def without_login(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url)


def secrets_in(text: str) -> Iterator[str]:
    """Yield the secrets that can be recognized by their shape, exactly as they are written."""
    yield from (found[0] for found in _PRIVATE_KEY.finditer(text))
    yield from (found[3] for found in _ORACLE.finditer(text))
    for shape in (_LOGIN, _ASSIGNED, _QUOTED, _HEADER, _BEARER):
        for found in shape.finditer(text):
            yield found[2]
            if found[2][0] + found[2][-1] in ('""', "''", "{}"):
                yield found[2][1:-1]
