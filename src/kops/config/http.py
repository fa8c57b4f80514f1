"""One connection for HTTP: Connect and the schema registry."""

from __future__ import annotations

from typing import Any, Literal

from kops.config.connection import Connection, Secret
from kops.config.pem import PRIVATE_KEY, blocks, read_pem, readable
from kops.core.errors import ConfigError


def no_login(request: Any) -> Any:
    """Add no credentials to a request of ``requests``: only what the connection configures is ever sent."""
    return request


def http_settings(connection: Connection, service: Literal["connect", "registry"]) -> dict[str, Any]:
    """Return the keyword arguments of every ``requests`` call to a service. Reads the secrets.

    :raises ConfigError: if a secret or a certificate cannot be read
    """
    http = connection.http
    settings: dict[str, Any] = {"timeout": connection.timeout, "verify": readable(http.ca_file, "http_ca_file") if http.ca_file else True}
    if http.certificate_file:
        certificate = readable(http.certificate_file, "http_certificate_file")
        key = readable(http.key_file, "http_key_file") if http.key_file else None
        # OpenSSL would ask for the passphrase on the terminal in the middle of a command.
        if any(each.encrypted for each in blocks(read_pem(key or certificate, "http_key_file", PRIVATE_KEY), PRIVATE_KEY, "http_key_file")):
            hint = "requests cannot open it: openssl pkey -in KEY -out PLAIN_KEY, and chmod 600 PLAIN_KEY"
            raise ConfigError(f"the private key in {key or certificate} is encrypted", hint=hint)
        settings["cert"] = (certificate, key) if key else certificate
    username: str | None = getattr(http, f"{service}_username")
    password: Secret | None = getattr(http, f"{service}_password")
    if username:
        if password is None:
            raise ConfigError(f"{service}_username is set and no {service}_password", hint=f"set {service}_password_file in the context")
        settings["auth"] = (username, password.reveal())
    return settings
