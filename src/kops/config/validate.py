"""Validates merged settings and builds a Connection from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kops.config import secrets
from kops.config.connection import Connection, Http, Oauth, Spark
from kops.config.layers import Layer, SecretReference
from kops.config.schema import SETTINGS, Kind
from kops.core.errors import ConfigError

MAX_PORT = 65535
_PROTOCOLS = {
    **dict.fromkeys(("sasl_mechanism", "username", "password", "oauth_token_url", "oauth_token_command"), "SASL_SSL (or SASL_PLAINTEXT)"),
    **dict.fromkeys(("ca_file", "certificate_file", "keystore_file"), "SSL (or SASL_SSL)"),
}
"""Security protocols that use a setting."""
_SERVER = re.compile(r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


def build(
    layer: Layer, name: str, environ: Mapping[str, str], *, config_file: Path | None = None, warnings: Iterable[str] = ()
) -> Connection:
    """Build the connection from a merged layer.

    :param config_file: the file of the context, whose permissions are checked
    :raises ConfigError: if settings are missing or contradict each other
    """
    values: dict[str, Any] = {"bootstrap_servers": ()}
    nested: dict[str, dict[str, Any]] = {"oauth": {}, "http": {}, "spark": {"conf": {}}, "client": {}}
    for key, sourced in layer.items():
        setting, inner = _setting_of(key)
        value = sourced.value.open(environ) if isinstance(sourced.value, SecretReference) else sourced.value
        part, _, attribute = setting.field.partition(".")
        if setting.kind is Kind.TABLE:
            (nested["spark"]["conf"] if part == "spark" else nested["client"])[inner] = value
        elif attribute:
            nested[part][attribute] = value
        else:
            values[part] = value
    connection = Connection(
        **values,
        name=name,
        oauth=Oauth(**nested["oauth"]),
        http=Http(**nested["http"]),
        spark=Spark(**nested["spark"]),
        client=nested["client"],
        sources={key: sourced.source for key, sourced in layer.items()},
        warnings=(*warnings, *_exposures(layer, config_file)),
    )
    check(connection)
    return replace(connection, warnings=(*connection.warnings, *_in_clear(connection)))


def _in_clear(connection: Connection) -> list[str]:
    """Return a warning for each login that is sent over a network unencrypted."""
    http = connection.http
    logins = [("connect_username", url) for url in connection.connect_urls if http.connect_username]
    logins += [("registry_username", connection.registry_url)] if http.registry_username and connection.registry_url else []
    here = ("localhost", "127.0.0.1", "::1")
    return [
        f"{setting} and its password go to {url} unencrypted: use https://"
        for setting, url in logins
        if url.startswith("http://") and urlsplit(url).hostname not in here
    ]


def check(connection: Connection) -> None:
    """Refuse settings that are incomplete or contradict each other.

    :raises ConfigError: the first contradiction
    """
    what = f"context {connection.name}" if connection.name else "the connection"
    for server in connection.bootstrap_servers:
        _check_server(server)
    if not connection.bootstrap_servers and "bootstrap_servers" in connection.sources:
        raise ConfigError(f"{what} has an empty list of brokers")
    _check_protocol(connection, what)
    if connection.uses_sasl:
        _check_sasl(connection, what)
    _check_certificates(connection, what)
    for url in (*connection.connect_urls, *([connection.registry_url] if connection.registry_url else [])):
        _check_url(url)


def _check_server(server: str) -> None:
    found = _SERVER.fullmatch(server)
    if not found or not 0 < int(found[2]) <= MAX_PORT:
        hint = f"brokers are host:port, for example {server}:9092" if re.fullmatch(r"[A-Za-z0-9._-]+", server) else "brokers are host:port"
        raise ConfigError(f"{server!r} is not the address of a broker", hint=hint)


def _check_protocol(connection: Connection, what: str) -> None:
    """Refuse a password or certificate without a security protocol that uses it: the connection would not be encrypted."""
    if "security_protocol" in connection.sources:
        return
    for name, protocols in _PROTOCOLS.items():
        if name in connection.sources:
            hint = f"set security_protocol to {protocols}"
            raise ConfigError(f"{what} has {name} ({connection.sources[name]}) and no security_protocol", hint=hint)


def _check_sasl(connection: Connection, what: str) -> None:
    mechanism = connection.sasl_mechanism
    if mechanism is None:
        hint = "set sasl_mechanism to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        raise ConfigError(f"{what} uses {connection.security_protocol} and has no sasl_mechanism", hint=hint)
    if mechanism == "OAUTHBEARER":
        oauth = connection.oauth
        if oauth.token_command and oauth.token_url:
            raise ConfigError(f"{what} has both oauth_token_command and oauth_token_url", hint="keep one of them")
        if not oauth.token_command and not (oauth.token_url and oauth.client_id and oauth.client_secret):
            hint = "set oauth_token_url, oauth_client_id and oauth_client_secret_file, or oauth_token_command"
            raise ConfigError(f"{what} uses OAUTHBEARER and does not say where tokens come from", hint=hint)
        return
    if not connection.username:
        raise ConfigError(f"{what} uses {mechanism} and has no username")
    if connection.password is None:
        hint = "set password_file, password_command or password_env in the context, or KOPS_PASSWORD"
        raise ConfigError(f"{what} uses {mechanism} and has no password for {connection.username}", hint=hint)


def _check_certificates(connection: Connection, what: str) -> None:
    if connection.keystore_file and (connection.certificate_file or connection.key_file):
        raise ConfigError(f"{what} has both keystore_file and certificate_file or key_file", hint="keep one of them")
    if bool(connection.certificate_file) != bool(connection.key_file):
        missing = "key_file" if connection.certificate_file else "certificate_file"
        raise ConfigError(f"{what} has no {missing}", hint="mTLS needs certificate_file and key_file; they may be the same file")
    http = connection.http
    if http.key_file and not http.certificate_file:
        raise ConfigError(f"{what} has http_key_file and no http_certificate_file")


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        hint = "use connect_username or registry_username, with the password_file of the same name"
        raise ConfigError(f"the address at {parts.hostname} holds a user or password", hint=hint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"{url!r} is not an address", hint="for example http://connect:8083")


def _setting_of(key: str) -> tuple[Any, str]:
    if key in SETTINGS:
        return SETTINGS[key], ""
    for table in ("spark.conf", "client"):
        if key.startswith(table + "."):
            return SETTINGS[table], key[len(table) + 1 :]
    raise KeyError(key)


def _holds_secret(key: str, value: str) -> bool:
    from kops.core.secret_shapes import is_secret_name, without_secrets  # compiling its patterns takes milliseconds

    return is_secret_name(key) or without_secrets(value) != value


def _exposures(layer: Layer, config_file: Path | None) -> list[str]:
    # The configuration contains no secrets of kops, but Spark's own settings can: fs.s3a.secret.key.
    in_spark = any(key.startswith("spark.conf.") and _holds_secret(key, str(one.value)) for key, one in layer.items())
    found = [secrets.exposure(config_file, holds_secret=in_spark)] if config_file else []
    files = [Path(one.value.reference) for one in layer.values() if isinstance(one.value, SecretReference) and one.value.form == "file"]
    files += [Path(layer[key].value) for key in ("key_file", "http_key_file", "keystore_file") if key in layer]
    return [warning for warning in dict.fromkeys(found + [secrets.exposure(file) for file in files]) if warning]
