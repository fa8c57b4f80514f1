import socket
from pathlib import Path

from kops.sandbox import ports


def test_picked_ports_are_distinct_free_and_not_ephemeral():
    picked = ports.pick(6)
    assert len(set(picked)) == 6
    assert all(ports.is_free(port) for port in picked)
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(picked) < first_ephemeral


def test_port_in_use_is_not_free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.answers(port)
    assert ports.is_free(port)
    assert not ports.answers(port)
