"""What tasks read from brokers with: sockets that take in what has come, and memory that stays."""

import socket

from kafka.net.inet import KafkaNetSocket

from kops.gateways.wire.connections import keep_freed_memory
from kops.gateways.wire.socket_buffers import URL


def test_one_call_takes_in_all_that_has_come():
    with socket.create_server(("127.0.0.1", 0)) as server, KafkaNetSocket(URL).socket(socket.AF_INET) as ours:
        ours.connect(server.getsockname())
        with server.accept()[0] as theirs:
            theirs.sendall(bytes(60_000))
            theirs.shutdown(socket.SHUT_WR)
            found = [len(data) for data in iter(lambda: ours.recv(4096), b"")]
    assert sum(found) == 60_000
    assert max(found) > 4096


def test_freed_memory_is_kept_where_the_c_library_can():
    assert keep_freed_memory() in (True, False)
