"""JAAS lines (``sasl.jaas.config``), parsed and formatted as by Kafka's ``JaasConfig``, which uses ``java.io.StreamTokenizer``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kops.core.errors import ConfigError

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}

_TEXT, _SIGN, _END = "text", "sign", ("end", "")
_FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_SPACE = re.compile(r"[\x00-\x20]+")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n\r]*|/.?[^\n\r]*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$\xa0-\U0010ffff][-.\w$\xa0-\U0010ffff]*", re.ASCII)
_NUMBER = re.compile(r"-?(?=[0-9.])[0-9]*\.?[0-9]*")
_QUOTED = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\n\r])*)(?:\1|\\\Z)?""", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SHAPE = 'MODULE required username="..." password="...";'


@dataclass(frozen=True)
class LoginModule:
    """One login module and its options, which contain secrets and are therefore not in ``repr``."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(line: str) -> LoginModule:
    """Parse a JAAS line of a client, which has exactly one login module.

    :raises ConfigError: if Kafka's ``JaasContext`` would not accept it; the error does not repeat the line
    """
    tokens = _tokens(line)
    modules = []
    for token in tokens:
        modules.append(_module(token, tokens))
        if len(modules) > 1:
            raise _wrong("it has more than one login module", "keep one: a client logs in with a single module")
    if not modules:
        raise _wrong("it names no login module", _SHAPE)
    return modules[0]


def _module(module: tuple[str, str], tokens: Iterator[tuple[str, str]]) -> LoginModule:
    flag = next(tokens, _END)
    if flag[1].upper() not in _FLAGS or flag[0] != _TEXT:
        raise _wrong("after the module stands required, requisite, sufficient or optional", _SHAPE)
    options: dict[str, str] = {}
    name = next(tokens, _END)
    while name not in (_END, (_SIGN, ";")):
        equals, value = next(tokens, _END), next(tokens, _END)
        if equals != (_SIGN, "=") or value[0] != _TEXT:
            hint = 'options are name="value"; without quotes a value is letters, digits, and . - _ $, and begins with a letter'
            raise _wrong("an option has no value", hint)
        if name[0] == _TEXT:  # Java keeps the value of a sign under no name
            options[name[1]] = value[1]
        name = next(tokens, _END)
    if name == _END:
        raise _wrong("no semicolon ends it", _SHAPE)
    if module[0] != _TEXT or not module[1]:
        raise _wrong("it begins with no login module", _SHAPE)
    return LoginModule(module[1], options)


def _wrong(what: str, hint: str) -> ConfigError:
    return ConfigError(f"sasl.jaas.config is not a JAAS line: {what}", hint=hint)


def format_jaas(module: str, options: Mapping[str, str]) -> str:
    """Format a JAAS line; any text is preserved, including quotes, backslashes and line ends."""
    written = "".join(f' {name}="{_escape(value)}"' for name, value in options.items())
    return f"{module} required{written};"


def _tokens(line: str) -> Iterator[tuple[str, str]]:
    """Yield texts, words or quoted, and signs, as ``StreamTokenizer`` makes them.

    A line end, too, closes a quote. What begins with a digit is a number, whose text is lost to JAAS, as most punctuation is.
    """
    position = 0
    while position < len(line):
        if found := _SPACE.match(line, position) or _COMMENT.match(line, position):
            position = found.end()
        elif found := _WORD.match(line, position):
            position = found.end()
            yield _TEXT, found[0]
        elif found := _QUOTED.match(line, position):
            position = found.end()
            yield _TEXT, _ESCAPE.sub(_unescape, found[2])
        else:
            sign = found[0] if (found := _NUMBER.match(line, position)) else line[position]
            position += len(sign)
            yield _SIGN, sign


def _unescape(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
