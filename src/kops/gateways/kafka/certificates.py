"""Why TLS with a broker fails, and with whose certificate: librdkafka does not name the certificate, kafka-python only times out."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from kops.gateways.wire.connections import tls_context

_SECONDS = 5.0
_ALERT_SECONDS = 1.0
"""TLS 1.3 refuses a client's certificate only after the handshake, in an alert that takes a round trip."""
_NO_CHECK_TIME = 0x200000
"""``X509_V_FLAG_NO_CHECK_TIME`` of OpenSSL, for which ``ssl`` has no name."""


def why_tls_fails(settings: Mapping[str, Any]) -> str | None:
    """Do the handshake with each bootstrap server as kafka-python does; return what is wrong with the first that fails.

    :param settings: librdkafka's, of a connection with TLS
    :returns: such as ``b1:9093 presents the certificate of CN=b1, by CN=ca: certificate has expired``; None: no handshake fails
    :raises ConfigError: when a certificate or key of the context cannot be used
    """
    context = tls_context(settings)
    for server in str(settings["bootstrap.servers"]).split(","):
        host, _, port = server.rpartition("//")[2].rpartition(":")
        address = (host.strip("[]"), int(port))
        try:
            _shake_hands(address, context)
        except ssl.SSLCertVerificationError as refused:
            return f"{server} presents {_certificate(address)}: {refused.verify_message}"
        except ssl.SSLError as refused:
            return f"{server} ended the TLS handshake: {_plain(refused.reason)}"
        except OSError:
            continue
    return None


def _shake_hands(address: tuple[str, int], context: ssl.SSLContext) -> None:
    with socket.create_connection(address, timeout=_SECONDS) as plain, context.wrap_socket(plain, server_hostname=address[0]) as secure:
        secure.settimeout(_ALERT_SECONDS)
        with contextlib.suppress(TimeoutError):
            secure.recv(1)


def _certificate(address: tuple[str, int]) -> str:
    """Return whose certificate a server presents: what OpenSSL says of one that is trusted, so it is taken as its own anchor."""
    try:
        presented = ssl.get_server_certificate(address, timeout=_SECONDS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=presented)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
        with socket.create_connection(address, timeout=_SECONDS) as plain, context.wrap_socket(plain) as secure:
            found: dict[str, Any] = secure.getpeercert() or {}
    except OSError:
        return "a certificate that cannot be read"
    names = ", ".join(name for _, name in found.get("subjectAltName", ()))
    return f"the certificate of {_name(found.get('subject', ()))} ({names or 'no other names'}) by {_name(found.get('issuer', ()))}"


def _name(parts: Any) -> str:
    return ", ".join(f"{_SHORT.get(key, key)}={value}" for part in parts for key, value in part) or "an empty name"


def _plain(reason: str | None) -> str:
    return (reason or "no reason given").lower().replace("_", " ")


_SHORT = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C", "localityName": "L"}
