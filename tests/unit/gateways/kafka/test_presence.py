"""Which brokers answer: real sockets, some of which never do."""

import socket
import threading
from functools import partial

import pytest

from kops.core.models import Broker
from kops.gateways.kafka import presence
from kops.gateways.kafka.presence import Presence, answer, answering, connect


@pytest.fixture
def listening():
    """A port that says something to whoever speaks first."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak():
            while True:
                try:
                    connected, _ = server.accept()
                except OSError:
                    return
                with connected:
                    connected.recv(100)
                    connected.sendall(b"x")

        threading.Thread(target=speak, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def hanging():
    """A port whose process hangs: the kernel accepts connections for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing():
    """A port that nothing listens at, and nothing else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def full():
    """A port whose queue is full: connections are neither accepted nor refused, as at a host that is gone."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        yield server.getsockname()[1]
        for one in waiting:
            one.close()


def test_only_addresses_that_can_be_reached_are_used(listening, refusing, hanging):
    good, bad, silent = (f"127.0.0.1:{port}" for port in (listening, refusing, hanging))
    assert answering([bad, good, silent], connect) == [good, silent]
    assert answering([bad, good, silent], partial(answer, tls=False)) == [good]
    assert answering([bad], connect) == [bad]
    assert answering([bad, bad], connect) == [bad, bad]  # the error names them all
    assert answering(["not an address", bad], connect) == ["not an address", bad]


@pytest.mark.parametrize("tls", [False, True])
def test_brokers_that_are_down_are_named_once(listening, refusing, full, hanging, monkeypatch, tls):
    for name, seconds in {"CONNECT_SECONDS": 0.5, "SAID_SECONDS": 0.2, "SILENT_SECONDS": 1.0}.items():
        monkeypatch.setattr(presence, name, seconds)
    brokers = [Broker(number, "127.0.0.1", port, None) for number, port in enumerate((listening, refusing, full, hanging), 1)]
    said, asked = [], []
    found = Presence(lambda: asked.append(1) or brokers, said.append, tls=tls)
    assert (found.down(), found.problem(2), said, asked) == ({}, None, [], [])  # there is no doubt
    found.doubt()
    down = found.down()
    assert (sorted(down), down[2]) == ([2, 3, 4], f"broker 2 at 127.0.0.1:{refusing} refuses connections")
    assert down[3] == f"broker 3 at 127.0.0.1:{full} does not accept a connection within 0.5 s"
    assert down[4].endswith("does not answer within 1 s")
    assert (found.up(), found.problem(1), len(asked)) == ([1], None, 1)
    assert str(found.problem(2, "its leader, ")) == f"its leader, broker 2 at 127.0.0.1:{refusing} refuses connections"
    assert (len(said), f"broker 4 at 127.0.0.1:{hanging} has not answered for 0.2 s" in said[0]) == (2, True)
    found.forget()
    found.down()
    assert (len(said), len(asked)) == (2, 2)
