"""Which addresses accept connections: real sockets, one of which never answers."""

import socket

import pytest

from kops.core.models import Broker
from kops.gateways.kafka import presence
from kops.gateways.kafka.presence import Presence, answering


@pytest.fixture
def listening():
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


def test_only_addresses_that_accept_are_used(listening, refusing):
    good, bad = f"127.0.0.1:{listening}", f"127.0.0.1:{refusing}"
    assert answering([bad, good]) == [good]
    assert answering([bad]) == [bad]
    assert answering([bad, bad]) == [bad, bad]  # the error names them all
    assert answering(["not an address", bad]) == ["not an address", bad]


def test_brokers_that_are_down_are_named_once(listening, refusing, full, monkeypatch):
    monkeypatch.setattr(presence, "CONNECT_SECONDS", 0.5)
    brokers = [Broker(number, "127.0.0.1", port, None) for number, port in enumerate((listening, refusing, full), 1)]
    said, asked = [], []
    found = Presence(lambda: asked.append(1) or brokers, said.append)
    assert found.down() == {
        2: f"broker 2 at 127.0.0.1:{refusing} refuses connections",
        3: f"broker 3 at 127.0.0.1:{full} does not accept a connection within 0.5 s",
    }
    assert (found.up(), found.problem(1), len(asked)) == ([1], None, 1)
    assert str(found.problem(2, "its leader, ")) == f"its leader, broker 2 at 127.0.0.1:{refusing} refuses connections"
    found.forget()
    found.down()
    assert (len(said), len(asked)) == (1, 2)
