"""Ports for servers that cannot be asked to choose one themselves, or that must come back on the same one."""

import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_chance = (
    random.Random()
)  # its own: pytest-randomly seeds the common one with the same number for every test


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which no one listens.

    They lie below the range from which the kernel takes the ports of outgoing connections: a port in that range can
    be taken by any client between this call and the server's start, and while the server is down.
    """
    lowest_ephemeral = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 32_768
    found: list[int] = []
    while len(found) < count:
        port = _chance.randrange(_LOWEST, max(lowest_ephemeral, _LOWEST + 1000))
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
