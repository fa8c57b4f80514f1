"""Run in a network namespace, in front of a command: opens ports there, hands them to kops outside, and becomes the command.

A socket stays in the namespace in which it was made, whoever holds it. This file is run by itself, and imports nothing of kops.

    python network_namespace.py FD ADDRESS:PORT ... -- COMMAND ...
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence

_FLAGS, _SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8913, 0x8914, 0x8916, 0x891C  # of linux/sockios.h
_UP_AND_RUNNING = 0x41
_AMBIENT, _CLEAR_ALL = 47, 4  # of linux/prctl.h
_NOT_FOUND = 127


def bring_up(addresses: Sequence[str]) -> None:
    """Bring the loopback device up, with further addresses beside 127.0.0.0/8."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        (flags,) = struct.unpack("16xh", fcntl.ioctl(any_socket, _FLAGS, struct.pack("16sh", b"lo", 0)))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP_AND_RUNNING))
        for number, address in enumerate(addresses, start=1):
            for what, value in ((_SET_ADDRESS, address), (_SET_MASK, "255.255.255.255")):
                name = b"lo:%d" % number
                fcntl.ioctl(any_socket, what, struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(value)))


def main(words: Sequence[str]) -> None:
    end = words.index("--")
    places = [place.rpartition(":") for place in words[1:end]]
    bring_up(sorted({address for address, _, _ in places if not address.startswith("127.")}))
    ports = [socket.create_server((address, int(port))) for address, _, port in places]
    if ports:
        with socket.socket(fileno=int(words[0])) as to_kops:
            socket.send_fds(to_kops, [b"."], [port.fileno() for port in ports])
    for port in ports:
        port.close()
    ctypes.CDLL(None).prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)  # the command gets no rights, not even in its own namespace
    try:
        os.execvp(words[end + 1], list(words[end + 1 :]))  # noqa: S606 - it takes the place of this process
    except OSError as error:
        sys.exit(f"cannot start {words[end + 1]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
