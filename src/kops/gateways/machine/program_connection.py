"""How kops and the JVM of a program reach each other: over the loopback address, or pipes where the program has no network."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol, cast

from kops.core.errors import MissingRequirement
from kops.gateways.machine.program_registries import namespace_command

_HOST = "127.0.0.1"
_LOOK_SECONDS = 0.05
_BUFFER = 1 << 20
_WAYS = (
    (("--user", "--map-current-user", "--net"), ("--keep-caps",)),
    (("--user", "--map-root-user", "--net"), ()),
)
"""Of util-linux, from 2.36 on and before: a network of its own without any device that is up, not even loopback; and what gives the first
process all rights in there, which in the second way it has."""


class Connection(Protocol):
    def send(self, content: bytes, /) -> None: ...

    def reader(self) -> IO[bytes]: ...

    def close(self) -> None: ...


class Listener(Protocol):
    """Waits for a started program to connect."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the agent needs to know of it."""

    def accepted(self, token: str, seconds: float, /) -> Connection | None:
        """Wait a moment for the program; return the connection once it has sent the token.

        :param seconds: how long the token may take
        """

    def close(self) -> None: ...


class Loopback:
    """A port of this machine's loopback address; another process that connects is sent away."""

    def __init__(self) -> None:
        self._server = socket.create_server((_HOST, 0))
        self._server.settimeout(_LOOK_SECONDS)

    @property
    def settings(self) -> Mapping[str, str]:
        return {"port": str(self._server.getsockname()[1])}

    def accepted(self, token: str, seconds: float, /) -> Connection | None:
        try:
            connection, _ = self._server.accept()
        except TimeoutError:
            return None
        connection.settimeout(seconds)
        if _received(connection, len(token)) == token.encode():
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _SocketConnection(connection)
        connection.close()
        return None

    def close(self) -> None:
        self._server.close()


class _SocketConnection:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, content: bytes, /) -> None:
        self._connection.sendall(content)

    def reader(self) -> IO[bytes]:
        return cast("IO[bytes]", self._connection.makefile("rb", _BUFFER))

    def close(self) -> None:
        self._connection.close()


class Pipes:
    """Two named pipes in a private folder."""

    def __init__(self, folder: Path) -> None:
        self._to, self._from = folder / "to-program", folder / "from-program"
        for each in (self._to, self._from):
            os.mkfifo(each, 0o600)
        self._reading = os.open(self._from, os.O_RDONLY | os.O_NONBLOCK)
        self._writing = -1
        self._token = b""

    @property
    def settings(self) -> Mapping[str, str]:
        return {"pipe.in": str(self._to), "pipe.out": str(self._from)}

    def accepted(self, token: str, _seconds: float, /) -> Connection | None:
        if self._writing < 0:
            try:
                self._writing = os.open(self._to, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                time.sleep(_LOOK_SECONDS)  # the program has not opened it yet
                return None
        select.select([self._reading], [], [], _LOOK_SECONDS)
        with contextlib.suppress(BlockingIOError):
            more = os.read(self._reading, len(token) - len(self._token))
            if not more:
                time.sleep(_LOOK_SECONDS)  # the same
            self._token += more
        if len(self._token) < len(token) or self._token != token.encode():
            return None
        made = _PipeConnection(self._reading, self._writing)
        self._reading = self._writing = -1
        return made

    def close(self) -> None:
        for each in (self._reading, self._writing):
            if each >= 0:
                os.close(each)
        self._reading = self._writing = -1


class _PipeConnection:
    def __init__(self, reading: int, writing: int) -> None:
        for each in (reading, writing):
            os.set_blocking(each, True)
        self._reading, self._writing = reading, os.fdopen(writing, "wb")
        self._file: IO[bytes] | None = None

    def send(self, content: bytes, /) -> None:
        self._writing.write(content)
        self._writing.flush()

    def reader(self) -> IO[bytes]:
        self._file = os.fdopen(self._reading, "rb", _BUFFER)
        return self._file

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what it can no longer take
            self._writing.close()
        if self._file is None:
            os.close(self._reading)
        else:
            self._file.close()


def no_network_command(*, loopback: bool = False) -> tuple[str, ...]:
    """Return the words before a command that start it without a network.

    :param loopback: what is started first brings up the loopback address, for which it has rights in there
    :raises MissingRequirement: when this system has no network namespaces, or does not let this user make one
    """
    tool, said = shutil.which("unshare"), "there is no command `unshare`, which Linux has"
    for network, rights in _WAYS if tool else ():
        way = (*network, *(rights if loopback else ()))
        words = namespace_command() if loopback else ()
        tried = subprocess.run(
            [tool or "", *way, "--", *words, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if tried.returncode == 0:
            return (tool or "", *way, "--")
        said = tried.stderr.strip().splitlines()[-1] if tried.stderr.strip() else f"`unshare` ended with exit code {tried.returncode}"
    raise MissingRequirement(
        f"this system does not run a program without a network: {said}",
        hint="allow user namespaces (sysctl user.max_user_namespaces), run kops where they are, or leave out --no-network",
    )


def _received(connection: socket.socket, length: int) -> bytes:
    found = b""
    try:
        while len(found) < length:
            more = connection.recv(length - len(found))
            if not more:
                return found
            found += more
    except OSError:
        return b""
    return found
