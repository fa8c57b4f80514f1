"""Sockets of kafka-python's connections that take in much at once: it asks for 4 KiB at a time, 250,000 times for a gigabyte."""

from __future__ import annotations

import socket

from kops.gateways.wire.kafka_python import socket_factory

URL = "kops-direct://"
"""As ``proxy_url``: by its scheme kafka-python finds the class below."""
RECEIVE_BYTES = 256 << 10


class _WideSocket(socket.socket):
    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return what has come, more than is asked for where there is more."""
        return super().recv(max(size, RECEIVE_BYTES), flags)


class WideSockets(socket_factory()):  # type: ignore[misc]
    """Makes sockets that connect directly; those of TLS are Python's own, as a record of TLS is small."""

    SCHEMES = ("kops-direct",)

    def socket(self, family: int = socket.AF_UNSPEC, sock_type: int = socket.SOCK_STREAM, proto: int = socket.IPPROTO_TCP) -> socket.socket:
        """Return a new socket."""
        return _WideSocket(family, sock_type, proto)
