"""Joins a group by any bytes: ``raw_group.py HOST:PORT GROUP TYPE METADATA_HEX ASSIGNMENT_HEX``; leaves it at SIGTERM."""

import signal
import socket
import struct
import sys
import time


def text(value):
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value


def sized(data):
    return struct.pack(">i", len(data)) + data


class Broker:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._stream = self._socket.makefile("rb")

    def ask(self, key, version, body):
        """Return the answer's bytes after the header."""
        self._socket.sendall(sized(struct.pack(">hhi", key, version, 1) + text(b"raw") + body))
        (length,) = struct.unpack(">i", self._stream.read(4))
        return self._stream.read(length)[4:]


def joined(broker, group, kind, metadata):
    """Return generation and member id."""
    member = b""
    while True:
        request = text(group) + struct.pack(">ii", 45_000, 60_000) + text(member) + text(None) + text(kind)
        answer = broker.ask(11, 5, request + struct.pack(">i", 1) + text(b"p") + sized(metadata))
        _, error, generation = struct.unpack_from(">ihi", answer)
        parts, at = [], 10
        for _ in range(3):  # protocol, leader, member
            (length,) = struct.unpack_from(">h", answer, at)
            parts.append(answer[at + 2 : at + 2 + max(0, length)])
            at += 2 + max(0, length)
        if not error:
            return generation, parts[2]
        if error == 79:  # MEMBER_ID_REQUIRED
            member = parts[2]
        time.sleep(0.1)


def main(address, group, kind, metadata, assignment):
    broker, name = Broker(address), group.encode()
    generation, member = joined(broker, name, kind.encode(), bytes.fromhex(metadata))
    us = text(name) + struct.pack(">i", generation) + text(member) + text(None)
    answer = broker.ask(14, 3, us + struct.pack(">i", 1) + text(member) + sized(bytes.fromhex(assignment)))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        print("joined" if struct.unpack_from(">ih", answer)[1] == 0 else answer.hex(), flush=True)
        while True:
            time.sleep(3)
            broker.ask(12, 3, us)
    finally:  # over a connection of its own: the signal may have come in the middle of an answer
        Broker(address).ask(13, 3, text(name) + struct.pack(">i", 1) + text(member) + text(None))


if __name__ == "__main__":
    main(*sys.argv[1:])
