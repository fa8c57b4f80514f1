"""Probing an address from outside: to explain a connection error, and to wait for a server to start.

A broker just closes the connection of a client that speaks the wrong protocol, which looks like a broker that is down.
"""

from __future__ import annotations

import socket
import ssl
from enum import Enum

_OK = 200
_SECONDS = 5.0


class ProbeResult(Enum):
    """What was found at an address; the value is a phrase about it."""

    UNKNOWN_HOST = "the host name of {} cannot be resolved"
    NOTHING = "nothing listens at {}"
    TLS = "{} speaks TLS"
    NO_TLS = "{} does not speak TLS"
    SILENT = "{} accepts connections and says nothing"


def probe_address(address: str, timeout: float) -> ProbeResult:
    """Connect to an address and offer TLS, without checking the certificate.

    :param address: ``host:port``, as brokers are written
    :param timeout: seconds
    """
    host, _, port = address.rpartition("//")[2].rpartition(":")
    try:
        connected = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout)
    except socket.gaierror:
        return ProbeResult.UNKNOWN_HOST
    except OSError:
        return ProbeResult.NOTHING
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent
    with connected:
        try:
            context.wrap_socket(connected, server_hostname=None).close()
        except ssl.SSLError as refused:
            # A TLS alert also means TLS: the server wants a client certificate, or another version.
            return ProbeResult.TLS if "ALERT" in (refused.reason or "") else ProbeResult.NO_TLS
        except TimeoutError:
            return ProbeResult.SILENT
        except OSError:
            return ProbeResult.NO_TLS
    return ProbeResult.TLS


def is_healthy(url: str) -> bool:
    """Whether a local server answers 200 at a URL; proxies are bypassed."""
    import urllib.error
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_SECONDS) as answer:
            return bool(answer.status == _OK)
    except (OSError, urllib.error.URLError, ValueError):
        return False
