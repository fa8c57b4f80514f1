"""Which brokers accept connections, looked at before requests are sent to them.

Without a majority of controllers a broker that was killed stays in the metadata as if it were in service, and clients wait for it. A
connection that is refused, or not accepted in time, shows that it is not.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial

from kops.core.errors import BrokerDown
from kops.core.models import Broker
from kops.gateways.threads import in_thread

CONNECT_SECONDS = 2.0
"""A connection whose first packet was lost is attempted again after one second (RFC 6298)."""
FRESH_SECONDS = 5.0
"""How long a look counts."""
_SPARE_SECONDS = 0.3
"""For the other addresses, after the first one has accepted."""


DOWN_HINT = "`kops cluster brokers` shows which brokers answer"


class Presence:
    """The brokers of a cluster that do not accept connections.

    :param nodes: returns the brokers in the metadata
    :param notify: receives a sentence for the user when some are down
    """

    def __init__(self, nodes: Callable[[], Sequence[Broker]], notify: Callable[[str], None]) -> None:
        self._nodes, self._notify = nodes, notify
        self._looked = float("-inf")
        self._known: list[int] = []
        self._down: dict[int, str] = {}
        self._notified: Mapping[int, str] = {}
        self._seen: dict[int, str] = {}

    def down(self) -> Mapping[int, str]:
        """Return the brokers in the metadata that do not accept connections, and why: ``broker 1 at host:9092 refuses connections``.

        :raises KopsError: when no broker answers
        """
        if time.monotonic() - self._looked > FRESH_SECONDS:
            nodes = self._nodes()
            answers = _accepting([(node.host, node.port) for node in nodes], CONNECT_SECONDS)
            why = zip(nodes, answers, strict=True)
            self._down = {node.id: f"broker {node.id} at {node.host}:{node.port} {reason}" for node, reason in why if reason}
            self._known = [node.id for node in nodes]
            self._looked = time.monotonic()
            self._seen |= self._down
            if self._down != self._notified:
                self._notified = self._down
                self._notify("; ".join(self._down.values()) or "every broker that is left accepts connections")
        return self._down

    def replaced(self) -> Mapping[int, str]:
        """Return the brokers that were down when first asked for, and that the metadata has dropped since: their groups are moving."""
        self.down()
        return {broker: reason for broker, reason in self._seen.items() if broker not in self._known}

    def forget(self) -> None:
        """Look again when next asked."""
        self._looked = float("-inf")

    def up(self) -> list[int]:
        """Return the brokers in the metadata that accept connections."""
        down = self.down()
        return [broker for broker in self._known if broker not in down]

    def problem(self, broker: int | None, role: str = "") -> BrokerDown | None:
        """Return that a broker is down; None if it is not.

        :param role: what the broker is, such as ``its coordinator, ``
        """
        reason = self.down().get(broker) if broker is not None else None
        return BrokerDown(f"{role}{reason}", hint=DOWN_HINT, broker=broker) if reason else None


def answering(addresses: Iterable[str]) -> list[str]:
    """Return the addresses, as ``host:port``, that accept connections; all of them if none does.

    A client tries its addresses in turn, and waits longer after each that fails.
    """
    wanted = list(addresses)
    if len(wanted) < 2:  # noqa: PLR2004 - there is no choice
        return wanted
    places = [_split(address) for address in wanted]
    if None in places:
        return wanted
    answers = _accepting([place for place in places if place is not None], CONNECT_SECONDS, enough=1)
    return [address for address, reason in zip(wanted, answers, strict=True) if reason is None] or wanted


def _split(address: str) -> tuple[str, int] | None:
    host, _, port = address.strip().rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isascii() and port.isdigit() else None


def _accepting(places: Iterable[tuple[str, int]], seconds: float, *, enough: int | None = None) -> list[str | None]:
    """Return for each place None if it accepts a connection, or why not.

    :param enough: how many must accept for the others to get only ``_SPARE_SECONDS`` more
    """
    attempts = [in_thread(partial(_connect, host, port, seconds)) for host, port in places]
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0 and (open_ := [one for one in attempts if not one.done()]):
        if enough is not None and sum(_reason(one) is None for one in attempts) >= enough:
            wait(open_, min(left, _SPARE_SECONDS))
            break
        wait(open_, left, return_when="FIRST_COMPLETED")
    return [_reason(one) for one in attempts]


def _reason(attempt: Future[None]) -> str | None:
    if not attempt.done():
        return f"does not accept a connection within {CONNECT_SECONDS:g} s"
    error = attempt.exception()
    if error is None:
        return None
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections"
    if isinstance(error, TimeoutError):
        return f"does not accept a connection within {CONNECT_SECONDS:g} s"
    return f"cannot be reached: {getattr(error, 'strerror', None) or error}"


def _connect(host: str, port: int, seconds: float) -> None:
    socket.create_connection((host, port), timeout=seconds).close()
