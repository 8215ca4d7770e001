"""Addresses and listening sockets."""

import ipaddress
import resource
import socket
from collections.abc import MutableMapping
from functools import lru_cache
from urllib.parse import urlsplit

ENOUGH = 16_384  # files that a process may ask for: more connections than one core can serve


def connections(most: int, *, share: float) -> int:
    """How many connections a listener takes: `most`, but no more than `share` of the files that may be open.

    Raises the process's own limit as far as the system lets it, up to `ENOUGH`: it is often 1,024, and once it is used
    up no listener accepts anything, health included.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return most if soft == resource.RLIM_INFINITY else min(most, int(soft * share))


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own(host: str) -> bool:
    """Whether `host` is an address of this machine or a name of one: what can be bound is ours."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    return any(_can_bind(family, where) for family, _, _, _, where in found)


def _can_bind(family: int, where: tuple[str | int, ...] | tuple[int, bytes]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind(where)
    except OSError:
        return False
    return True


def is_local_name(host: str, own: str) -> bool:
    name = host.lower().rsplit("]", 1)[0].removeprefix("[") if "]" in host else ""
    name = name or host.lower().rsplit(":", 1)[0]
    return name == own.lower() or is_loopback(name) or name.endswith(".localhost")


def is_this_machine(host: str, own: str) -> bool:
    """The same, and the names by which containers know the machine that they run on, which no one else can have."""
    return is_local_name(host, own) or host.lower().partition(":")[0] in _OF_CONTAINERS


_OF_CONTAINERS = frozenset(
    ("host.docker.internal", "gateway.docker.internal", "host.containers.internal")
)


def is_local_origin(origin: str) -> bool:
    """Whether an `Origin` header names a page that this machine serves."""
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False


@lru_cache(1024)
def sender(host: str) -> str:
    """Whom an address stands for: itself, or of IPv6 the network of 64 bits that one host usually has to itself."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def address(host: str, port: int) -> str:
    """`host:port`, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind(host: str, port: int, *, backlog: int | None = None) -> socket.socket:
    """A bound TCP socket; port 0 is any free one.

    With `backlog` it listens already: so many connections wait until they are served. Raises socket.gaierror: the host
    has no address. Raises OSError: the port is taken, or the address is not one of this machine's.
    """
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        if backlog is not None:
            sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def spare_loopback(environ: MutableMapping[str, str]) -> None:
    """Have the libraries of this process and its children reach this machine itself without a proxy."""
    given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    names = [each.strip() for each in given.split(",") if each.strip()]
    if "*" not in names:
        names += [each for each in _LOOPBACK if each not in names]
    environ["no_proxy"] = environ["NO_PROXY"] = ",".join(names)


def exporter_settings(*, host: str, grpc: int, http: int, tls: bool) -> tuple[str, str]:
    """The variables for OTLP over gRPC, and for OTLP over HTTP; `host` is the listener's.

    A listener on all addresses is reached on this machine's loopback.
    """
    scheme = "https" if tls else "http"
    name = host if is_loopback(host) else "127.0.0.1"
    grpc_port, http_port = (
        f"OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://{address(name, port)}" for port in (grpc, http)
    )
    return (
        f"{grpc_port} OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        f"{http_port} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    )
