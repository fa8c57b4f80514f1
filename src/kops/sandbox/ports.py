"""Free ports of the loopback interface, below the ephemeral range.

While its broker is down, a port of the ephemeral range could be taken by any client, even by one that reconnects to
that very broker (a TCP self-connect), so those are never chosen.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

from kops.core.errors import MissingRequirement
from kops.sandbox.model import HOST

_LOWEST, _DEFAULT_EPHEMERAL = 20000, 32768


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: closed connections do not block the port
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((HOST, port)) == 0


def pick(count: int) -> list[int]:
    """Return this many different free ports.

    :raises MissingRequirement: if there are not enough
    """
    candidates = list(range(_LOWEST, _first_ephemeral()))
    random.shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if is_free(port):
            found.append(port)
            if len(found) == count:
                return found
    raise MissingRequirement(f"there are no {count} free ports from {_LOWEST} to {_first_ephemeral()} on {HOST}")


def _first_ephemeral() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _DEFAULT_EPHEMERAL
    return first if first > _LOWEST + 1000 else _DEFAULT_EPHEMERAL
