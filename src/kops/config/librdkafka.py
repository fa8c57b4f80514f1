"""One connection for librdkafka (confluent-kafka)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kops.config.connection import Connection
from kops.config.pem import CERTIFICATE, PRIVATE_KEY, for_openssl, read_pem, readable
from kops.core.errors import ConfigError

CLIENT_ID = "kops"
_PEM = {"ca_file": ("ca", CERTIFICATE), "certificate_file": ("certificate", CERTIFICATE), "key_file": ("key", PRIVATE_KEY)}


def librdkafka_settings(connection: Connection) -> dict[str, Any]:
    """Return the properties of a confluent-kafka client. Reads the secrets.

    All values are strings, except ``oauth_cb`` if tokens come from a command.

    :raises kops.core.errors.ConfigError: if a secret cannot be read
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "security.protocol": connection.security_protocol,
        "client.id": CLIENT_ID,
    }
    if connection.uses_tls:
        settings |= _tls(connection)
    if connection.uses_sasl:
        settings |= _sasl(connection)
    settings |= dict(connection.client)
    if authorities := settings.get("ssl.ca.pem"):
        settings["ssl.ca.pem"] = for_openssl(authorities, CERTIFICATE, "ssl.ca.pem") or authorities
    return settings


def without_files(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties that hold what is in their files of certificates and keys, for machines that lack these.

    :raises kops.core.errors.ConfigError: when one cannot be read
    """
    found = dict(settings)
    for setting, (name, holds) in _PEM.items():
        if path := found.pop(f"ssl.{name}.location", None):
            found[f"ssl.{name}.pem"] = read_pem(path, setting, holds)
    return found


def _tls(connection: Connection) -> dict[str, str]:
    files: dict[str, str] = {}
    for setting, (name, holds) in _PEM.items():
        if path := getattr(connection, setting):
            rewritten = for_openssl(read_pem(path, setting, holds), holds, path)
            if (
                rewritten and rewritten.count("-----BEGIN") > 1 and setting != "ca_file"
            ):  # librdkafka takes the first of ssl.certificate.pem
                hint = "put each between -----BEGIN ...----- and -----END ...-----, in lines of 64 characters"
                raise ConfigError(f"{path} ({setting}) holds several parts without line ends, which OpenSSL does not read", hint=hint)
            files |= {f"ssl.{name}.pem": rewritten} if rewritten else {f"ssl.{name}.location": path}
    if connection.keystore_file:
        readable(connection.keystore_file, "keystore_file")
    named = {
        "ssl.key.password": connection.key_password and connection.key_password.reveal(),
        "ssl.keystore.location": connection.keystore_file,
        "ssl.keystore.password": connection.keystore_password and connection.keystore_password.reveal(),
    }
    algorithm = "https" if connection.verify_hostname else "none"
    return files | {key: value for key, value in named.items() if value} | {"ssl.endpoint.identification.algorithm": algorithm}


def _sasl(connection: Connection) -> dict[str, Any]:
    mechanism = connection.sasl_mechanism or ""
    if mechanism != "OAUTHBEARER":
        password = connection.password.reveal() if connection.password else ""
        return {"sasl.mechanism": mechanism, "sasl.username": connection.username or "", "sasl.password": password}
    oauth = connection.oauth
    if oauth.token_command:
        from kops.config.oauth import TokenCommand

        return {"sasl.mechanism": mechanism, "oauth_cb": TokenCommand(oauth.token_command)}
    named = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
        "sasl.oauthbearer.client.id": oauth.client_id,
        "sasl.oauthbearer.client.secret": oauth.client_secret and oauth.client_secret.reveal(),
        "sasl.oauthbearer.scope": oauth.scope,
        "https.ca.location": connection.http.ca_file,
    }
    return {"sasl.mechanism": mechanism} | {key: value for key, value in named.items() if value}
