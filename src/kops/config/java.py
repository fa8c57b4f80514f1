"""One connection for Java: Spark's ``kafka.*`` options, Apache's tools, Kafka Streams applications.

The properties are those of Kafka clients 3.4 and later (Spark 4.0 includes 3.9). Certificates are PEM (KIP-651).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from kops.config.connection import Connection
from kops.config.jaas import LOGIN_MODULES, format_jaas
from kops.config.pem import ENCRYPTED_KEY, PRIVATE_KEY, blocks, read_pem, readable
from kops.core.errors import ConfigError

OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_PBES2 = bytes.fromhex("06092a864886f70d01050d")
"""The object identifier 1.2.840.113549.1.5.13, DER encoded (RFC 8018)."""
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - the name of a setting
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"

SAME_IN_BOTH = frozenset(
    {
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "ssl.cipher.suites",
    }
)
"""Client properties with the same name and meaning in librdkafka and Java: ``-X`` applies to both."""


def java_settings(connection: Connection, directory: Path | None = None) -> dict[str, str]:
    """Return the properties of a Java client. Reads the secrets.

    :param directory: a private directory for what Java reads from files, named after their content: the key store of mTLS, a token. None:
        everything is in the values themselves, including certificates, so that they work on other machines (Spark executors on a cluster)
    :raises ConfigError: if a secret or certificate cannot be read, or Java cannot use it
    """
    settings = {"bootstrap.servers": ",".join(connection.bootstrap_servers), "security.protocol": connection.security_protocol}
    if connection.uses_tls:
        settings |= _trust(connection, inline=directory is None)
        settings |= _identity(connection, directory)
        settings["ssl.endpoint.identification.algorithm"] = "https" if connection.verify_hostname else ""
    if connection.uses_sasl:
        settings |= _sasl(connection, directory)
    return settings | {key: value for key, value in connection.client.items() if key in SAME_IN_BOTH}


def java_system_properties(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the system properties (``-D``) that a JVM needs in addition to the settings of a client.

    Kafka clients 3.9.1 and later fetch tokens only from URLs, including files, that this property allows.
    """
    return {ALLOWED_URLS: settings[TOKEN_URL]} if settings.get(TOKEN_URL) else {}


def token_file(connection: Connection, directory: Path) -> Path | None:
    """Return the file that Java reads a token from; None if no command prints tokens."""
    command = connection.oauth.token_command
    if not (connection.uses_sasl and connection.sasl_mechanism == "OAUTHBEARER" and command):
        return None
    return directory / f"token-{_digest(command)}.jwt"


def write_token(connection: Connection, directory: Path) -> float:
    """Run the token command, write its token to the file, and return when it expires, in seconds since the epoch.

    :raises ConfigError: if the command fails
    """
    from kops.config.oauth import TokenCommand

    file = token_file(connection, directory)
    if file is None:
        raise ConfigError("no command prints tokens", hint="set oauth_token_command")
    token, expires = TokenCommand(connection.oauth.token_command or "")()
    write_private(file, token)
    return expires


def write_private(path: Path, text: str) -> Path:
    """Write a file that only this user can read, replacing an existing one; create its directory if needed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123 - mode at creation
            file.write(text)
        return temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(text: str) -> str:
    """Return a name derived from the content, so that two contexts never overwrite each other's files."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _trust(connection: Connection, *, inline: bool) -> dict[str, str]:
    certificates = connection.client.get("ssl.ca.pem")
    if not certificates and connection.ca_file:
        certificates = read_pem(connection.ca_file, "ca_file")
        if not inline:
            return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(Path(connection.ca_file).absolute())}
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates} if certificates else {}


def _identity(connection: Connection, directory: Path | None) -> dict[str, str]:
    if connection.keystore_file:
        if directory is None:
            hint = "split it into PEM: openssl pkcs12 -in STORE -clcerts -nokeys -out cert.pem, then -nocerts -out key.pem"
            raise ConfigError(f"the key store {connection.keystore_file} cannot be sent to other machines", hint=hint)
        store = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": readable(connection.keystore_file, "keystore_file")}
        return store | ({"ssl.keystore.password": connection.keystore_password.reveal()} if connection.keystore_password else {})
    if not connection.certificate_file or not connection.key_file:
        return {}
    chain, key = (
        read_pem(connection.certificate_file, "certificate_file"),
        private_key(connection.key_file, has_password=connection.key_password is not None),
    )
    password = {"ssl.key.password": connection.key_password.reveal()} if connection.key_password else {}
    if directory is None:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key} | password
    if connection.certificate_file == connection.key_file:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(Path(connection.key_file).absolute())} | password
    content = f"{key.rstrip()}\n{chain.lstrip()}"
    store_file = write_private(directory / f"keystore-{_digest(content)}.pem", content)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store_file.absolute())} | password


def private_key(path: str, *, has_password: bool) -> str:
    """Return the text of the file with the key, if Java can open it.

    :raises ConfigError: if it cannot, with the command that converts it
    """
    text = read_pem(path, "key_file", PRIVATE_KEY)
    keys = blocks(text, PRIVATE_KEY, f"{path} (key_file)")
    if len(keys) > 1:
        raise ConfigError(f"{path} (key_file) holds {len(keys)} private keys, and Java wants one", hint="keep that of the certificate")
    if keys[0].label not in (PRIVATE_KEY, ENCRYPTED_KEY):
        hint = f"convert it: openssl pkcs8 -topk8 -in {path} -out key.pem (add -nocrypt for no password)"
        raise ConfigError(f"the private key in {path} is not PKCS#8, which Java wants", hint=hint)
    if keys[0].encrypted is not has_password:
        what = "has no password, and key_password is set" if has_password else "is encrypted, and no key_password is set"
        raise ConfigError(
            f"the private key in {path} {what}: Java would not open it", hint="set key_password only for a key with a password"
        )
    if keys[0].encrypted and _PBES2 in keys[0].der:
        hint = "use keystore_file, made with openssl pkcs12 -export; or encrypt with openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES"
        raise ConfigError(f"the private key in {path} is encrypted with PBES2, which Java cannot open (JDK-8231581)", hint=hint)
    return text


def _sasl(connection: Connection, directory: Path | None) -> dict[str, str]:
    mechanism = connection.sasl_mechanism or ""
    settings = {"sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return settings | _oauth(connection, directory)
    options = {"username": connection.username or "", "password": connection.password.reveal() if connection.password else ""}
    return settings | {"sasl.jaas.config": format_jaas(LOGIN_MODULES[mechanism], options)}


def _oauth(connection: Connection, directory: Path | None) -> dict[str, str]:
    oauth = connection.oauth
    options: Mapping[str, str | None] = {}
    url = oauth.token_url
    if oauth.token_command:
        if directory is None:
            hint = "use oauth_token_url with oauth_client_id and oauth_client_secret_file"
            raise ConfigError("a token from oauth_token_command cannot be sent to other machines: nothing would renew it", hint=hint)
        write_token(connection, directory)
        url = (token_file(connection, directory) or directory).absolute().as_uri()
    else:
        secret = oauth.client_secret.reveal() if oauth.client_secret else None
        options = {"clientId": oauth.client_id, "clientSecret": secret, "scope": oauth.scope}
    return {
        TOKEN_URL: url or "",
        "sasl.login.callback.handler.class": OAUTH_HANDLER,
        "sasl.jaas.config": format_jaas(LOGIN_MODULES["OAUTHBEARER"], {key: value for key, value in options.items() if value}),
    }
