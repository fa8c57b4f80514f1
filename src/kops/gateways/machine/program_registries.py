"""How a program that kops runs reaches its schema registries: through kops, which lets it read.

Its settings are given other addresses. In a network namespace also those that its code names lead to kops: names by a file of hosts, and
addresses since the loopback device there has them.
"""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from kops.config.java import write_private
from kops.core.errors import KopsError, OperationFailed
from kops.core.streams.registries import Origin, redirected
from kops.gateways.machine import network_namespace
from kops.gateways.registry.read_only import ReadOnlyRegistry, Upstream

_HERE = "127.0.0.1"
_START_SECONDS = 30.0
_FILE_OF_HOSTS = "hosts"
_TLS_FILES = ("verify", "cert")
"""Settings of ``requests`` that may be paths: of certificate authorities, and of a certificate, with or without its key."""


@dataclass(frozen=True)
class Registries:
    """What a program asks.

    :param settings: of the program, with commas between addresses, which are to lead to kops
    """

    upstreams: tuple[Upstream, ...] = ()
    settings: Mapping[str, str] | None = None


def with_contents(registries: Registries) -> Registries:
    """Return registries whose requests hold the content of their TLS files, for a machine that lacks these; never to be shown."""
    return _with_tls(registries, lambda path: Path(path).read_bytes() if isinstance(path, str) else path)


def with_files(registries: Registries, folder: Path) -> Registries:
    """Return registries that hold such contents with files of this machine, which only this user can read."""

    def written(content: Any) -> Any:
        if not isinstance(content, bytes):
            return content
        return str(write_private(folder / f"{sha256(content).hexdigest()[:16]}.pem", content.decode()))

    return _with_tls(registries, written)


def _with_tls(registries: Registries, change: Callable[[Any], Any]) -> Registries:
    def changed(value: Any) -> Any:
        return tuple(map(change, value)) if isinstance(value, tuple) else change(value)

    def moved(upstream: Upstream) -> Upstream:
        return replace(upstream, request={name: changed(each) if name in _TLS_FILES else each for name, each in upstream.request.items()})

    return replace(registries, upstreams=tuple(map(moved, registries.upstreams)))


def namespace_command(places: Sequence[str] = (), fd: int = -1) -> tuple[str, ...]:
    """Return the words before a command that open ports in the namespace it is started in.

    :param places: ADDRESS:PORT
    :param fd: to which they are handed
    """
    return (sys.executable, "-I", "-S", network_namespace.__file__, str(fd), *places, "--")


class RegistryProxies:
    """The addresses at which one program asks its registries through kops.

    :param alone: it has no network
    :param folder: its own
    """

    def __init__(self, registries: Registries, *, alone: bool, folder: Path) -> None:
        self._registries, self._open = registries, list[ReadOnlyRegistry]()
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        if alone and registries.upstreams:
            self._ours, self._theirs = socket.socketpair()
        self._places = _places([each.origin for each in registries.upstreams]) if self._ours else {}
        self._ports = list(dict.fromkeys(f"{address}:{origin.port}" for origin, address in self._places.items()))
        self._hosts = folder / _FILE_OF_HOSTS
        if self._ours is not None:
            names = [f"{address} {origin.host}" for origin, address in self._places.items() if not origin.address]
            self._hosts.write_text("\n".join([f"{_HERE} localhost {socket.gethostname()}", *names, ""]), encoding="utf-8")
            return
        for upstream in registries.upstreams:
            self._open.append(ReadOnlyRegistry(upstream, socket.create_server((_HERE, 0)), f"/{secrets.token_hex(16)}"))

    @property
    def words(self) -> tuple[str, ...]:
        """Before the command, inside the namespace."""
        return namespace_command(self._ports, self._theirs.fileno()) if self._theirs else ()

    @property
    def fds(self) -> tuple[int, ...]:
        return (self._theirs.fileno(),) if self._theirs else ()

    @property
    def java_options(self) -> tuple[str, ...]:
        return (f"-Djdk.net.hosts.file={self._hosts}",) if self._ours else ()

    def answer(self) -> None:
        """Answer at the ports inside, once the program is started; where it could not be, its end says why."""
        if self._ours is None or self._theirs is None:
            return
        self._theirs.close()
        self._ours.settimeout(_START_SECONDS)
        try:
            _, fds, _, _ = socket.recv_fds(self._ours, 1, len(self._ports))
        except TimeoutError:
            fds = []
        at = {f"{self._places[each.origin]}:{each.origin.port}": each for each in reversed(self._registries.upstreams)}
        self._open = [ReadOnlyRegistry(at[port], socket.socket(fileno=fd)) for port, fd in zip(self._ports, fds, strict=False)]

    @property
    def settings(self) -> dict[str, str]:
        """The program's settings with which it asks kops."""
        if self._ours is not None:
            places = {origin: f"{address}:{origin.port}" for origin, address in self._places.items()}
        else:
            places = {each.upstream.origin: f"{_HERE}:{each.port}{each.path}" for each in self._open}
        return {name: redirected(urls, places) for name, urls in (self._registries.settings or {}).items()}

    @property
    def refusal(self) -> KopsError | None:
        """What the program would have changed."""
        return next((each.refusal for each in self._open if each.refusal), None)

    def explained(self, error: KopsError) -> KopsError:
        """Return the error of a program that failed, or why it could not ask a registry, if that is so."""
        if self.refusal is not None:
            return self.refusal
        found = next((each.failure for each in self._open if each.failure), None)
        if found is None or any(each.answered for each in self._open):
            return error
        return OperationFailed(f"{found.message}; {error.message}", hint=found.hint, **error.details)

    def close(self) -> None:
        for each in self._open:
            each.close()
        for end in (self._ours, self._theirs):
            if end is not None:
                end.close()


def _places(origins: Sequence[Origin]) -> dict[Origin, str]:
    """Return the address of each registry inside a namespace: its own, or one for its name."""
    return {origin: origin.address or f"127.0.1.{number}" for number, origin in enumerate(origins, start=1)}
