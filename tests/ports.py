"""Ports for servers that a test starts, and starts again: nobody else is given them meanwhile.

A port that the kernel chose is soon another connection's own, since it chooses those from the same range; these lie
below that range, and a process hands out none twice.
"""

import itertools
import os
import socket
from contextlib import suppress

FIRST, LAST = 10_000, 32_000
_next = itertools.count(FIRST + os.getpid() * 101 % (LAST - FIRST))  # elsewhere for each process


def free_ports(count):
    """So many ports that nobody listens on."""
    out = []
    while len(out) < count:
        port = FIRST + (next(_next) - FIRST) % (LAST - FIRST)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            out.append(port)
    return out


def free_port():
    return free_ports(1)[0]
