"""The settings of a context: names, kinds, and the single definition of valid values.

The same table defines the keys of ``config.toml``, the ``KOPS_*`` variables and the flags of ``kops context add``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from kops.config.connection import SASL_MECHANISMS, SECURITY_PROTOCOLS
from kops.core.errors import ConfigError


class Kind(Enum):
    """The kind of a value, with its description for error messages."""

    TEXT = "text"
    PATH = "a path"
    LIST = "a list of texts, or one text with commas"
    FLAG = "true or false"
    SECONDS = "a number of seconds above 0"
    CHOICE = "one of"
    SECRET = "a secret"  # noqa: S105 - the word itself, no secret
    TABLE = "a table of texts, numbers or true and false"


@dataclass(frozen=True)
class Setting:
    """One setting.

    :param name: key in ``[contexts.NAME]``; a dot means a table inside it
    :param field: attribute of Connection; a dot leads into its parts
    :param help: one line for ``kops context add --help``
    """

    name: str
    kind: Kind
    field: str
    help: str
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        return "KOPS_" + self.name.upper().replace(".", "_")


SECRET_FORMS = ("file", "command", "env")
"""A secret ``password`` is configured as ``password_file``, ``password_command`` or ``password_env``."""

SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("bootstrap_servers", Kind.LIST, "bootstrap_servers", "Brokers to start from, host:port,..."),
        Setting("security_protocol", Kind.CHOICE, "security_protocol", "How to talk to the brokers.", SECURITY_PROTOCOLS),
        Setting("sasl_mechanism", Kind.CHOICE, "sasl_mechanism", "How to log in.", SASL_MECHANISMS),
        Setting("username", Kind.TEXT, "username", "SASL user."),
        Setting("password", Kind.SECRET, "password", "SASL password."),
        Setting("ca_file", Kind.PATH, "ca_file", "PEM of the authorities that sign the brokers' certificates."),
        Setting("certificate_file", Kind.PATH, "certificate_file", "PEM of our own certificate and its chain (mTLS)."),
        Setting("key_file", Kind.PATH, "key_file", "PEM of the private key of that certificate."),
        Setting("key_password", Kind.SECRET, "key_password", "Password of the private key."),
        Setting("keystore_file", Kind.PATH, "keystore_file", "PKCS12 file instead of certificate and key."),
        Setting("keystore_password", Kind.SECRET, "keystore_password", "Password of the PKCS12."),
        Setting("verify_hostname", Kind.FLAG, "verify_hostname", "Check that a broker's certificate carries its name."),
        Setting("oauth_token_url", Kind.TEXT, "oauth.token_url", "OAuth token endpoint (client credentials)."),
        Setting("oauth_client_id", Kind.TEXT, "oauth.client_id", "OAuth client."),
        Setting("oauth_client_secret", Kind.SECRET, "oauth.client_secret", "OAuth client secret."),
        Setting("oauth_scope", Kind.TEXT, "oauth.scope", "OAuth scope."),
        Setting("oauth_token_command", Kind.TEXT, "oauth.token_command", "Command that prints a token; run without a shell."),
        Setting("connect_urls", Kind.LIST, "connect_urls", "Kafka Connect workers, http(s)://host:port,..."),
        Setting("connect_username", Kind.TEXT, "http.connect_username", "User for Connect."),
        Setting("connect_password", Kind.SECRET, "http.connect_password", "Password for Connect."),
        Setting("registry_url", Kind.TEXT, "registry_url", "Schema registry, http(s)://host:port."),
        Setting("registry_username", Kind.TEXT, "http.registry_username", "User for the registry."),
        Setting("registry_password", Kind.SECRET, "http.registry_password", "Password for the registry."),
        Setting("http_ca_file", Kind.PATH, "http.ca_file", "PEM of the authorities of Connect and the registry."),
        Setting("http_certificate_file", Kind.PATH, "http.certificate_file", "PEM of our certificate for Connect and the registry."),
        Setting("http_key_file", Kind.PATH, "http.key_file", "PEM of the private key of that certificate."),
        Setting("spark.master", Kind.TEXT, "spark.master", "Spark master: local[*], spark://host:7077, yarn, k8s://..."),
        Setting("spark.remote", Kind.TEXT, "spark.remote", "Spark Connect server: sc://host:15002."),
        Setting("spark.jars_directory", Kind.PATH, "spark.jars_directory", "Folder with the jars of Spark's Kafka source."),
        Setting("spark.staging_directory", Kind.TEXT, "spark.staging_directory", "Folder or URL that all executors reach."),
        Setting("spark.conf", Kind.TABLE, "spark.conf", "Further Spark setting, key=value."),
        Setting("client", Kind.TABLE, "client", "Further librdkafka property, key=value."),
        Setting("protected", Kind.FLAG, "protected", "Every change needs the context's name, typed or with --confirm."),
        Setting("read_only", Kind.FLAG, "read_only", "Refuse every change."),
        Setting("timeout", Kind.SECONDS, "timeout", "Seconds that one request may take."),
    )
}

_CONTEXT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return a hint that names the most similar candidate; None if none is similar."""
    import difflib

    found = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f"did you mean {found[0]}?" if found else None


def check_context_name(name: str) -> None:
    """Refuse a name that is not valid for a context.

    :raises ConfigError: if it has characters other than letters, digits, ``.``, ``_`` and ``-``, or begins with one of the last three
    """
    if not _CONTEXT_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a context", hint="use letters, digits, '.', '_' and '-'")


def convert(setting: Setting, value: Any, where: str, base: Path) -> Any:
    """Convert a value of ``config.toml`` to the type of its field.

    :param where: file and key, for the error message
    :param base: the folder that relative paths are relative to
    :raises ConfigError: if the value is of another kind
    """
    kind = setting.kind
    if kind is Kind.FLAG and isinstance(value, bool):
        return value
    if kind is Kind.SECONDS and isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    if kind is Kind.LIST and isinstance(value, list) and value and all(isinstance(one, str) and one.strip() for one in value):
        return tuple(one.strip() for one in value)
    if kind is Kind.TABLE and isinstance(value, dict):
        return {key: scalar(one, f"{where}.{key}") for key, one in value.items()}
    if isinstance(value, str) and value.strip() and kind in {Kind.TEXT, Kind.PATH, Kind.LIST, Kind.CHOICE}:
        return _convert_text(setting, value, where, base)
    expected = f"{kind.value} {', '.join(setting.choices)}" if setting.choices else kind.value
    raise ConfigError(f"{where} must be {expected}, not {_describe(value)}")


def convert_text(setting: Setting, text: str, where: str) -> Any:
    """Convert a value that is text, from a flag or the environment, to the type of its field. Paths are relative to the current directory.

    :raises ConfigError: as for :func:`convert`
    """
    base = Path.cwd()
    if setting.kind is Kind.FLAG:
        words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
        return convert(setting, words.get(text.strip().lower(), text), where, base)
    if setting.kind is Kind.SECONDS:
        try:
            return convert(setting, float(text), where, base)
        except ValueError:
            pass
    if setting.kind is Kind.TABLE:
        return dict(split_property(one, where) for one in text.split(",") if one.strip())
    return convert(setting, text, where, base)


def split_property(text: str, where: str) -> tuple[str, str]:
    """Split ``key=value``.

    :raises ConfigError: if there is no ``=``, or nothing before it
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{where}: expected key=value", hint="for example -X socket.timeout.ms=10000")
    return key.strip(), value.strip()


def scalar(value: Any, where: str) -> str:
    """Convert a string, number or boolean to a string, as clients expect."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ConfigError(f"{where} must be a string, a number or true or false, not {_describe(value)}")


def _convert_text(setting: Setting, value: str, where: str, base: Path) -> Any:
    if setting.kind is Kind.LIST:
        return tuple(one.strip() for one in value.split(",") if one.strip())
    if setting.kind is Kind.PATH:
        return str(base / Path(value).expanduser())
    if setting.kind is Kind.CHOICE:
        chosen = value.strip().upper()
        if chosen not in setting.choices:
            choices = ", ".join(setting.choices)
            raise ConfigError(f"{where} must be one of {choices}, not {value!r}", hint=nearest(chosen, setting.choices))
        return chosen
    return value.strip() if setting.name != "username" else value


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value!r}" if value.strip() else "an empty text"
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    names: dict[type, str] = {list: "a list", dict: "a table"}
    return names.get(type(value), type(value).__name__)
