"""Certificates and keys, in files or settings, found by the rules of Kafka's ``DefaultSslEngineFactory.PemParser``.

Java reads what OpenSSL does not: spaces in place of line ends, as in a variable of a container, any number of dashes, lines of any length.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kops.config.files import read_bytes
from kops.core.errors import ConfigError

CERTIFICATE, PRIVATE_KEY, ENCRYPTED_KEY = "CERTIFICATE", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"
LARGEST = 4 << 20
_LINE = r"[^\n\r\x85\u2028\u2029]"
_PARAMETERS = r"(?P<parameters>(?:[ \t\v\f]*[\r\n]|[^\r\n:]*:[^\r\n]*[\r\n])*)"
"""Empty lines and those with a colon, in a form that does not backtrack."""
_BASE64 = re.compile(r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{2}(?:==)?|[a-zA-Z0-9/+]{3}=?)?")
_FOR_OPENSSL = re.compile(
    r"^-----BEGIN (CERTIFICATE|(?:(?:ENCRYPTED|RSA|EC|DSA) )?PRIVATE KEY)-----[ \t]*\r?\n"
    r"(?:Proc-Type:[^\r\n]*\r?\nDEK-Info:[^\r\n]*\r?\n\r?\n)?"
    r"((?:[a-zA-Z0-9/+=]{1,76}\r?\n)+)-----END \1-----[ \t]*\r?$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """One certificate or key.

    :param label: what a line of its beginning says in OpenSSL: by the content, since Java ignores what is written there
    :param der: DER; encrypted if the parameters say so (RFC 1421)
    """

    label: str
    der: bytes
    parameters: str = ""

    @property
    def encrypted(self) -> bool:
        return self.label == ENCRYPTED_KEY or "ENCRYPTED" in self.parameters


def readable(path: str, setting: str) -> str:
    """Return the path, if it can be read.

    :param setting: for the error message
    :raises ConfigError: naming the path and the setting
    """
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({setting}): {error.strerror}") from None
    return path


def read_pem(path: str, setting: str, name: str = CERTIFICATE) -> str:
    """Return the text of a PEM file.

    :param name: what it has to hold
    :raises ConfigError: if it cannot be read, or holds none; the error does not repeat its content
    """
    readable(path, setting)
    text = read_bytes(Path(path), largest=LARGEST).decode("latin-1")  # comments around the blocks can be in any encoding
    if "-BEGIN" not in text:
        raise ConfigError(f"{path} ({setting}) is not PEM", hint="PEM files hold lines such as -----BEGIN CERTIFICATE-----")
    blocks(text, name, f"{path} ({setting})")
    return text


def blocks(text: str, name: str, place: str) -> list[Block]:
    """Return the certificates or keys in a text, as Java finds them.

    :param name: ``CERTIFICATE`` or ``PRIVATE KEY``
    :param place: where the text is from, for messages
    :raises ConfigError: if there is none, or one is not base64 of DER
    """
    found = list(_found(text, name, place))
    if not found:
        raise ConfigError(f"{place} holds no {name.lower()}", hint=f"it stands between -----BEGIN {name}----- and -----END {name}-----")
    return found


def _found(text: str, name: str, place: str) -> Iterator[Block]:
    named = name.replace(" ", r"\s+")
    begin = rf"(?<!-)-+BEGIN\s*(?P<label>{_LINE}*{named}[^-]*)-+\s+"
    pattern = re.compile(rf"{begin}{_PARAMETERS}(?P<base64>[a-zA-Z0-9/+=\s]*)(?<!-)-+END\s*{_LINE}*{named}[^-]*-+\s+", re.ASCII)
    for number, each in enumerate(pattern.finditer(text + "\n"), 1):
        digits = re.sub(r"\s", "", each["base64"], flags=re.ASCII)
        if not _BASE64.fullmatch(digits):
            raise ConfigError(f"{place}: {name.lower()} {number} is not base64", hint="copy it again, whole")
        der = base64.b64decode(digits.rstrip("=") + "=" * (-len(digits.rstrip("=")) % 4))
        yield Block(name if name == CERTIFICATE else _key_label(der, " ".join(each["label"].split())), der, each["parameters"])


def _key_label(der: bytes, written: str) -> str:
    """Return the label of a key by its first elements: PKCS#8, encrypted or not (RFC 5208), or as it is written."""
    lengths = 2 + (der[1] & 0x7F if len(der) > 1 and der[1] & 0x80 else 0)
    inner = der[lengths : lengths + 4]
    if inner[:1] == b"\x30":
        return ENCRYPTED_KEY
    return PRIVATE_KEY if inner[:2] == b"\x02\x01" and inner[3:] == b"\x30" else "RSA PRIVATE KEY" if written == PRIVATE_KEY else written


def for_openssl(text: str, name: str, place: str) -> str | None:
    """Return PEM in ASCII as OpenSSL reads it, for a text that only Java would read; None if OpenSSL reads it as it is.

    :raises ConfigError: see :func:`blocks`
    """
    found = blocks(text, name, place)
    plain = [each[1] for each in _FOR_OPENSSL.finditer(text) if len("".join(each[2].split())) % 4 == 0]
    alone = text.count("-BEGIN") == text.count("-END") == len(plain)  # OpenSSL stops at anything else that looks like one
    if alone and sum(name in label for label in plain) == len(found) and text.isascii():
        return None
    return "".join(map(_written, found))


def _written(block: Block) -> str:
    digits = base64.b64encode(block.der).decode()
    lines = [digits[at : at + 64] for at in range(0, len(digits), 64)]
    parameters = [*filter(str.strip, block.parameters.splitlines()), ""] if "ENCRYPTED" in block.parameters else []
    return "\n".join([f"-----BEGIN {block.label}-----", *parameters, *lines, f"-----END {block.label}-----", ""])
