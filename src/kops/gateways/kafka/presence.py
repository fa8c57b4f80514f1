"""Which brokers answer, looked at once a request was not answered in time.

Without a majority of controllers a broker that was killed stays in the metadata as if it were in service, and clients wait for it. A
connection that is refused, or not accepted in time, shows that it is not; so does one without a byte for some seconds, as the
kernel accepts connections for a process that hangs.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from threading import Lock

from kops.core.errors import BrokerDown
from kops.core.models import Broker
from kops.gateways.threads import in_thread

CONNECT_SECONDS = 2.0
"""A connection whose first packet was lost is attempted again after one second (RFC 6298)."""
LATE_SECONDS = 0.5
"""Brokers that answer do so within this time as a rule; after it, it is worth a look whether they are there."""
SAID_SECONDS = 1.0
"""When a broker that has not answered is named; it may still be slow."""
SILENT_SECONDS = 5.0
"""When a broker counts as down that accepts connections and answers nothing."""
FRESH_SECONDS = 5.0
"""How long a look counts."""
_SPARE_SECONDS = 0.3
"""For the other addresses, after the first one has accepted."""


Reach = Callable[[str, int], None]
DOWN_HINT = "`kops brokers list` shows which brokers answer"
_API_VERSIONS = struct.pack(">hhih4s", 18, 0, 1, 4, b"kops")
"""The one request that brokers answer before a login (version 0)."""


class Presence:
    """The brokers of a cluster that do not answer.

    :param nodes: returns the brokers in the metadata
    :param notify: receives a sentence for the user when some are down
    :param tls: whether they expect TLS
    """

    def __init__(self, nodes: Callable[[], Sequence[Broker]], notify: Callable[[str], None], *, tls: bool = False) -> None:
        self._nodes, self.notify, self._tls = nodes, notify, tls
        self.doubted = False
        """Whether a request was not answered in time, or an address refuses connections."""
        self._looking = Lock()
        self._looked = float("-inf")
        self._known: Mapping[int, str] = {}
        """Addresses by broker."""
        self._down: dict[int, str] = {}
        self._notified: Mapping[int, str] = {}
        self._seen: dict[int, str] = {}

    def doubt(self) -> None:
        """Let the brokers be looked at when next asked for: a request was not answered in time, or an address refuses connections."""
        self.doubted = True

    def down(self) -> Mapping[int, str]:
        """Return the brokers in the metadata that do not answer, and why: ``broker 1 at host:9092 refuses connections``.

        None, without a look, while there is no doubt.

        :raises KopsError: when no broker answers
        """
        return self.look() if self.doubted else {}

    def look(self) -> Mapping[int, str]:
        """Return the same, whether or not there is a doubt."""
        with self._looking:
            if time.monotonic() - self._looked > FRESH_SECONDS:
                self._look()
        self.doubted = self.doubted or bool(self._down)
        return self._down

    def _look(self) -> None:
        nodes = self._nodes()
        self._down = self._silent(nodes)
        self._known = {node.id: f"{node.host}:{node.port}" for node in nodes}
        self._looked = time.monotonic()
        self._seen |= self._down
        if self._down != self._notified:
            self._notified = self._down
            self.notify("; ".join(self._down.values()) or "every broker that is left answers")

    def _silent(self, nodes: Sequence[Broker]) -> dict[int, str]:
        """Return why brokers count as down; name those that are late, and wait no longer for those that were down before."""
        attempts = {node: in_thread(partial(answer, node.host, node.port, tls=self._tls)) for node in nodes}
        wait(attempts.values(), SAID_SECONDS)
        late = [node for node, attempt in attempts.items() if not attempt.done() and node.id not in self._down]
        if late:
            self.notify("; ".join(f"{_words(node)} has not answered for {SAID_SECONDS:g} s" for node in late))
            wait(attempts.values(), SILENT_SECONDS - SAID_SECONDS)
        found = {node.id: f"{_words(node)} {reason}" for node, attempt in attempts.items() if (reason := _reason(attempt))}
        return found | {node.id: self._down[node.id] for node, one in attempts.items() if not one.done() and node.id in self._down}

    def replaced(self) -> Mapping[int, str]:
        """Return the brokers that were down when first asked for, and that the metadata has dropped since: their groups are moving."""
        self.down()
        return {broker: reason for broker, reason in self._seen.items() if broker not in self._known}

    def forget(self) -> None:
        """Look again when next asked."""
        self._looked = float("-inf")

    def up(self) -> list[int]:
        """Return the brokers in the metadata that are not down, after a look."""
        down = self.look()
        return [broker for broker in self._known if broker not in down]

    def known_addresses(self) -> list[str]:
        """Return where the brokers are that answered, if the last look found some that did not."""
        return [address for broker, address in self._known.items() if broker not in self._down] if self._down else []

    def problem(self, broker: int | None, role: str = "") -> BrokerDown | None:
        """Return that a broker is down; None if it is not.

        :param role: what the broker is, such as ``its coordinator, ``
        """
        reason = self.down().get(broker) if broker is not None else None
        return BrokerDown(f"{role}{reason}", hint=DOWN_HINT, broker=broker) if reason else None


def answering(addresses: Iterable[str], reached: Reach) -> list[str]:
    """Return the addresses, as ``host:port``, that can be reached; all of them if none can.

    A client tries its addresses in turn, and waits longer after each that fails.

    :param reached: raises an error for one that cannot: ``connect`` or ``answer``
    """
    wanted = list(addresses)
    if len(wanted) < 2:  # noqa: PLR2004 - there is no choice
        return wanted
    places = [_split(address) for address in wanted]
    if None in places:
        return wanted
    answers = _reached([place for place in places if place is not None], reached)
    return [address for address, reason in zip(wanted, answers, strict=True) if reason is None] or wanted


def _split(address: str) -> tuple[str, int] | None:
    host, _, port = address.strip().rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isascii() and port.isdigit() else None


def _reached(places: Iterable[tuple[str, int]], reached: Reach) -> list[str | None]:
    """Return for each place None if it is reached, or why not; once one is, the others get only ``_SPARE_SECONDS`` more."""
    attempts = [in_thread(partial(reached, host, port)) for host, port in places]
    deadline = time.monotonic() + CONNECT_SECONDS
    while (left := deadline - time.monotonic()) > 0 and (open_ := [one for one in attempts if not one.done()]):
        if any(_reason(one) is None for one in attempts):
            wait(open_, min(left, _SPARE_SECONDS))
            break
        wait(open_, left, return_when="FIRST_COMPLETED")
    return [_reason(one) for one in attempts]


def _words(node: Broker) -> str:
    return f"broker {node.id} at {node.host}:{node.port}"


def _reason(attempt: Future[None]) -> str | None:
    error = attempt.exception() if attempt.done() else _Silent()
    if error is None:
        return None
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections"
    if isinstance(error, _Silent):
        return f"does not answer within {SILENT_SECONDS:g} s"
    if isinstance(error, TimeoutError):
        return f"does not accept a connection within {CONNECT_SECONDS:g} s"
    return f"cannot be reached: {getattr(error, 'strerror', None) or error}"


class _Silent(Exception):
    """A connection is accepted, and then comes nothing."""


def connect(host: str, port: int) -> None:
    """Connect."""
    socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()


def answer(host: str, port: int, *, tls: bool) -> None:
    """Connect, and wait until the other side says anything, were it that it refuses to speak."""
    with socket.create_connection((host, port), timeout=CONNECT_SECONDS) as connected:
        connected.settimeout(SILENT_SECONDS)
        try:
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE  # nothing is sent
                context.wrap_socket(connected).close()
            else:
                connected.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
                connected.recv(1)
        except TimeoutError:
            raise _Silent from None
        except OSError:  # a refusal is an answer
            return
