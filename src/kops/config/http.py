"""One connection for HTTP: Connect and the schema registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from kops.config.connection import Connection, Secret
from kops.config.pem import PRIVATE_KEY, blocks, read_pem, readable
from kops.config.tls import accept_as_java
from kops.core.errors import ConfigError, UsageProblem

if TYPE_CHECKING:
    import requests

_NO_SEGMENTS = ("", ".", "..")
"""What is removed from the path of an address before it is sent (RFC 3986, 5.2.4), so that another resource would be asked."""


def http_session() -> requests.Session:
    """Return a session that accepts the certificates that Java accepts, and sends only what it is given.

    Without a login of its own, ``requests`` would send the one that ``~/.netrc`` has for a host.
    """
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util.ssl_ import create_urllib3_context

    context = accept_as_java(create_urllib3_context())

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *at: Any, **settings: Any) -> None:
            super().init_poolmanager(*at, **settings, ssl_context=context)

        def proxy_manager_for(self, proxy: str, **settings: Any) -> Any:
            return super().proxy_manager_for(proxy, **settings, ssl_context=context)

    session = requests.Session()
    session.mount("https://", Adapter())
    session.auth = no_login
    return session


def no_login(request: Any) -> Any:
    """Add no credentials to a request of ``requests``."""
    return request


def path_segment(name: str, what: str) -> str:
    """Return a name as one segment of a path.

    :param what: what has this name, for the error: ``connector``
    :raises UsageProblem: when no address can hold it
    """
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if quoted in _NO_SEGMENTS:
        raise UsageProblem(f"no request reaches a {what} named {name!r}: an address cannot hold that name")
    return quoted


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
