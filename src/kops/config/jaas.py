"""JAAS lines (``sasl.jaas.config``), parsed and formatted as by Kafka's ``JaasConfig``, which uses ``java.io.StreamTokenizer``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.errors import ConfigError

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}

_TOKEN = re.compile(
    r"""\s+|//[^\n\r]*|/\*.*?\*/               # space and comments
      |"(?P<double>(?:\\.|[^"\\\n\r])*)"
      |'(?P<single>(?:\\.|[^'\\\n\r])*)'
      |(?P<sign>[=;])
      |(?P<word>[^\s=;"'/]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True)
class LoginModule:
    """One login module and its options, which contain secrets and are therefore not in ``repr``."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(line: str) -> LoginModule:
    """Parse the first entry of a JAAS line.

    :raises ConfigError: if it is not one; the error does not repeat the line
    """
    tokens = _tokens(line)
    if not tokens or ("sign", ";") not in tokens:
        raise ConfigError("sasl.jaas.config is not a JAAS line", hint='MODULE required username="..." password="...";')
    entry = tokens[: tokens.index(("sign", ";"))]
    options, rest = {}, entry[2:]
    if not entry or len(rest) % 3 or any(rest[at + 1] != ("sign", "=") for at in range(0, len(rest), 3)):
        raise ConfigError("sasl.jaas.config is not a JAAS line: options are name=\"value\", and the line ends with ';'")
    for at in range(0, len(rest), 3):
        options[rest[at][1]] = rest[at + 2][1]
    return LoginModule(entry[0][1], options)


def format_jaas(module: str, options: Mapping[str, str]) -> str:
    """Format a JAAS line; any text is preserved, including quotes, backslashes and line ends."""
    written = "".join(f' {name}="{_escape(value)}"' for name, value in options.items())
    return f"{module} required{written};"


def _tokens(line: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(line):
        found = _TOKEN.match(line, position)
        if not found:
            raise ConfigError("sasl.jaas.config is not a JAAS line: a quote is not closed", hint="values stand in double quotes")
        position = found.end()
        if found.lastgroup in {"double", "single"}:
            tokens.append(("text", _ESCAPE.sub(_unescape, found[found.lastgroup])))
        elif found.lastgroup:
            tokens.append((found.lastgroup, found[found.lastgroup]))
    return tokens


def _unescape(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
