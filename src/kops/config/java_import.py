"""Convert a Java ``client.properties`` (``--command-config``, ``kops context import``) into kops' settings.

Apache's names and librdkafka's own (``sasl.username``, ``ssl.ca.location``) are both understood, because files with this name contain
either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kops.config import secrets
from kops.config.files import read_bytes
from kops.config.jaas import LOGIN_MODULES, parse_jaas
from kops.config.java import SAME_IN_BOTH
from kops.config.layers import HOSTNAME_ALGORITHM, LIBRDKAFKA_NAMES, Layer, SourcedValue
from kops.config.pem import LARGEST
from kops.config.properties import parse_properties
from kops.config.schema import SETTINGS, convert_text
from kops.core.errors import ConfigError
from kops.core.secret_shapes import is_secret_name

_SECRETS: Mapping[str, str] = {
    "sasl.password": "password",
    "ssl.key.password": "key_password",
    "sasl.oauthbearer.client.secret": "oauth_client_secret",
    "sasl.oauthbearer.client.credentials.client.secret": "oauth_client_secret",
}
_NAMES: Mapping[str, str] = {
    **{key: name for key, name in LIBRDKAFKA_NAMES.items() if key != "ssl.keystore.location"},  # Java's can be of any type
    "sasl.oauthbearer.client.credentials.client.id": "oauth_client_id",
}
_ELSEWHERE = ("ssl.truststore.", "ssl.keystore.", "sasl.jaas.config", HOSTNAME_ALGORITHM, "request.timeout.ms")
_IMPLIED = ("sasl.login.callback.handler.class", "sasl.oauthbearer.method")
_TRIMMED = "".join(map(chr, range(33)))  # what String.trim removes
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_ASN1_SEQUENCE = b"\x30"


@dataclass(frozen=True)
class ClientProperties:
    """The contents of a properties file, as settings of kops.

    :param values: by setting name; ``client.<property>`` for those that are passed through
    :param secrets: the secrets in the file, by setting name; never shown
    :param notes: what kops does not use, one sentence each
    """

    values: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = ()

    def layer(self, source: str) -> Layer:
        layer = {name: SourcedValue(value, source) for name, value in self.values.items()}
        return layer | {name: SourcedValue(secrets.from_value(source, value), source) for name, value in self.secrets.items()}


def read_client_properties(path: Path) -> ClientProperties:
    """Read a properties file. Relative paths in it are relative to the current directory, as in Java.

    :raises ConfigError: if it cannot be read, or asks for something that kops does not support
    """
    body = read_bytes(path)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("latin-1")  # what java.util.Properties.load(InputStream) assumes
    try:
        properties = parse_properties(text)
        holds_secret = any(value and is_secret_name(key) for key, value in properties.items())
        return convert_properties(properties, secrets.exposure(path) if holds_secret else None)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", hint=error.hint) from None


def convert_properties(properties: Mapping[str, str], warning: str | None = None) -> ClientProperties:
    """Translate properties into settings of kops.

    :raises ConfigError: if they ask for something that kops does not support
    """
    properties = {key: value.strip(_TRIMMED) if key != "sasl.password" else value for key, value in properties.items()}
    for key, value in properties.items():
        if re.fullmatch(r"\$\{[^}]*\}", value):
            hint = "kops reads the value itself: put it there, or make a context with password_file"
            raise ConfigError(f"{key} is a reference for a Java config provider", hint=hint)
    values: dict[str, Any] = {}
    found: dict[str, str] = {}
    notes = [warning] if warning else []
    for key, value in properties.items():
        if key in _NAMES and value:
            values[_NAMES[key]] = convert_text(SETTINGS[_NAMES[key]], value, key)
        elif key in _SECRETS:
            found[_SECRETS[key]] = value
        elif key in SAME_IN_BOTH or key in {"ssl.ca.pem", "socket.timeout.ms"}:
            values[f"client.{key}"] = value
        elif value and key not in _IMPLIED and not key.startswith(_ELSEWHERE):
            notes.append(f"{key} is not used by kops")
    _special(properties, values, found)
    return ClientProperties(values, {name: value for name, value in found.items() if value}, tuple(notes))


def _special(properties: Mapping[str, str], values: dict[str, Any], found: dict[str, str]) -> None:
    if HOSTNAME_ALGORITHM in properties:
        values["verify_hostname"] = properties[HOSTNAME_ALGORITHM].lower() not in {"", "none"}
    if properties.get("request.timeout.ms", "").isdecimal():
        values["timeout"] = int(properties["request.timeout.ms"]) / 1000
    if properties.get("sasl.jaas.config"):
        _jaas(properties["sasl.jaas.config"], values, found)
    values |= truststore_settings(properties)
    store, store_secrets = keystore_settings(properties)
    values |= store
    found |= store_secrets


def _jaas(line: str, values: dict[str, Any], found: dict[str, str]) -> None:
    entry = parse_jaas(line)
    mechanisms = [mechanism for mechanism, module in LOGIN_MODULES.items() if module == entry.module]
    if not mechanisms:
        raise ConfigError(f"sasl.jaas.config names {entry.module}", hint="kops speaks PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER")
    if "sasl_mechanism" not in values and len(mechanisms) == 1:
        values["sasl_mechanism"] = mechanisms[0]
    names = {"username": "username", "clientId": "oauth_client_id", "scope": "oauth_scope"}
    values |= {name: entry.options[option] for option, name in names.items() if entry.options.get(option)}
    hidden = {"password": "password", "clientSecret": "oauth_client_secret"}
    found |= {name: entry.options[option] for option, name in hidden.items() if entry.options.get(option)}


def store_type(path: Path) -> str:
    """Return PEM, PKCS12 or JKS by the file's content: Java's JKS type opens PKCS12 files too, so the declared type is unreliable.

    :raises ConfigError: if it cannot be read or is another kind of file
    """
    start = read_bytes(path, what="store", largest=LARGEST)
    if start.startswith((_JKS_MAGIC, _JCEKS_MAGIC)):
        return "JKS"
    if b"-BEGIN" in start:
        return "PEM"
    if start.startswith(_ASN1_SEQUENCE):
        return "PKCS12"
    raise ConfigError(f"{path} is not a PEM, PKCS12 or JKS store")


def truststore_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return ``ca_file``, or the certificates themselves, from a Java trust store.

    :raises ConfigError: if it is not PEM, with the commands that convert it
    """
    if properties.get("ssl.truststore.certificates"):
        return {"client.ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location")
    if not location:
        return {}
    path = Path(location).absolute()
    kind = store_type(path)
    if kind != "PEM":
        hint = (
            f"export its authorities: keytool -list -rfc -keystore {path} | sed -n '/BEGIN/,/END/p' > ca.pem,"
            " then set ssl.truststore.type=PEM and ssl.truststore.location=ca.pem"
        )
        raise ConfigError(f"the trust store {path} is {kind}; librdkafka needs PEM", hint=hint)
    return {"ca_file": str(path)}


def keystore_settings(properties: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings for the client's certificate and key, and the secrets that open them.

    :raises ConfigError: if librdkafka cannot use the store, with the command that converts it
    """
    if properties.get("ssl.keystore.key"):
        hint = "save key and certificate chain in one PEM file, and set ssl.keystore.type=PEM and ssl.keystore.location"
        raise ConfigError("ssl.keystore.key holds the private key itself, and kops keeps keys in files only", hint=hint)
    location = properties.get("ssl.keystore.location")
    if not location:
        return {}, {}
    path = Path(location).absolute()
    kind = store_type(path)
    if kind == "JKS":
        hint = f"convert it: keytool -importkeystore -srckeystore {path} -destkeystore client.p12 -deststoretype PKCS12"
        raise ConfigError(f"the key store {path} is JKS; librdkafka needs PKCS12 or PEM", hint=hint)
    if kind == "PEM":
        return {"certificate_file": str(path), "key_file": str(path)}, {}
    password = properties.get("ssl.keystore.password") or ""
    return {"keystore_file": str(path)}, {"keystore_password": password}
