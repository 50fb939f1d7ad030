"""Ports for servers in processes of their own, which take a number and not a socket."""

import itertools
import os
import socket

# Below those that the system gives to sockets that ask for any: none of them comes between the
# look and the server's start. Each process of the tests has a stretch of its own.
_NUMBERS = itertools.count(20_000 + os.getpid() % 480 * 25)


def free_port() -> int:
    """A port of this machine that nothing listens on, and that is given to nobody else."""
    for port in _NUMBERS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("numbers end")
