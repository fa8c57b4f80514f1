"""Recognizing secrets by the name of a setting and by the shape of a text: keys, credentials in addresses, tokens. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Sequence

HIDDEN = "********"

_SECRET = re.compile(
    r"passw(?:or)?d|passphrase|passcode|(?:^|[._-])(?:pass|pwd|pw|pin)(?:$|[._-])|secret|token(?!iz)|credential|authorization"
    r"|(?:private|access|account|api|encryption|signing|shared|master|hmac)[._-]?key|keystore[._-]?key(?:$|[._-])|ssl[._-]key[._-]pem"
    r"|jaas\.config|auth\.user\.info|\bsas\b|oauthbearer\.config$",
    re.IGNORECASE,
)
_IN_CAMELS = re.compile(r"[a-z](?:Pass|Pwd|Pin)(?![a-z])")
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
_SAID = re.compile(r"(?i)(\b(?:password|passwd|passphrase|passcode|pwd|pin|secret|token|identified\s+by)\s+)('[^']+'|\"[^\"]+\"|`[^`]+`)")
_QUOTED = re.compile(r"([\"']([\w.$-]+)[\"']\s*:\s*)(\"(?:[^\"\\]|\\.)*\"|'[^']*'|-?\d[\d.eE+-]*)")
_KEY_TYPE = re.compile(r"[\"']kty[\"']\s*:")
_OF_A_KEY = ("d", "p", "q", "dp", "dq", "qi", "k")
"""Members of a JSON Web Key that are private (RFC 7518, 6.2.2, 6.3.2 and 6.4.1)."""
_HEADER = re.compile(
    r"(?i)((?:\bauthorization|\bcookie|\bx-[\w-]*(?:token|key|secret|auth))[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token|apikey|digest)\s+)?)"
    r"([^\s|\"']+)"
)
_BASIC = re.compile(r"(?i)(\bbasic\s+)([a-z0-9+/]{4,}={0,2})(?![\w+/=])")
_ENCODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{60,}={0,2}")
_ADDRESS = re.compile(r"https?://[^\s\"'<>|,]+")
_PART = re.compile(r"(?<=[/=])[^/?&=#]+")
_RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w~.:+%-]{20,}")
_TOKEN_OF_A_HOOK = re.compile(r"(?=.*\d)[\w~.:@+%-]{8,}|[\w~.:@+%-]{16,}")
_BEARER = re.compile(r"(?i)(\bbearer\s+)(?=\S*[\d._~+/=-])([^\s,|\"']{8,})")


def is_secret_name(name: str) -> bool:
    return bool(_SECRET.search(name) or _IN_CAMELS.search(name)) and not _NO_SECRET.search(name)


def name_patterns() -> tuple[str, str, str]:
    """Return the patterns of :func:`is_secret_name` for Java: names of secrets, the same in camel case, and exceptions.

    The first and the last ignore case.
    """
    return _SECRET.pattern, _IN_CAMELS.pattern, _NO_SECRET.pattern


def without_secrets(text: str, kept: Callable[[str], bool] = lambda _: False) -> str:
    """Hide what looks like a secret by its shape.

    :param kept: whether to show a value although it looks like a secret, such as a reference
    """
    for start, end in reversed(_places(text, kept)):
        text = f"{text[:start]}{HIDDEN}{text[end:]}"
    return text


def _places(text: str, kept: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Return the spans of secrets, in order and without overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(_spans(text, kept)):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _spans(text: str, kept: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    yield from (found.span() for found in _PRIVATE_KEY.finditer(text))
    yield from (found.span() for found in _ENCODED.finditer(text) if "PRIVATE KEY-----" in _decoded(found[0]))
    yield from (found.span(3) for found in _ORACLE.finditer(text) if not kept(found[3]))
    yield from (found.span(2) for found in _LOGIN.finditer(text) if not kept(found[0]))
    for shape in (_ASSIGNED, _SAID, _HEADER, _BEARER):
        yield from (found.span(2) for found in shape.finditer(text) if not kept(found[2]))
    yield from (found.span(2) for found in _BASIC.finditer(text) if ":" in _decoded(found[2]))
    private = _OF_A_KEY if _KEY_TYPE.search(text) else ()
    for found in _QUOTED.finditer(text):
        if (is_secret_name(found[2]) or found[2] in private) and not kept(found[3]):
            yield found.span(3)
    for found in _ADDRESS.finditer(text):
        shape = _TOKEN_OF_A_HOOK if "hook" in found[0].lower() else _RANDOM
        path = found[0].find("/", found[0].index("://") + 3)
        for part in _PART.finditer(found[0], path) if path > 0 else ():
            if shape.fullmatch(part[0]) and not kept(part[0]):
                yield found.start() + part.start(), found.start() + part.end()


def _decoded(text: str) -> str:
    """Return the text that Base64 stands for; empty for anything else."""
    try:
        return base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""


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
    for start, end in _places(text, lambda _: False):
        secret = text[start:end]
        yield secret
        if secret[0] + secret[-1] in ('""', "''", "{}", "``"):
            yield secret[1:-1]
        if secret[0] == '"' and "\\" in secret:
            yield from _unescaped(secret)


def _unescaped(text: str) -> Iterator[str]:
    try:
        yield str(json.loads(text))
    except ValueError:
        return
