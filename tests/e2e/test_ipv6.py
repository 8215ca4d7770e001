"""The service on every address of IPv6 and IPv4, by the variables that the chart sets."""

import socket
import urllib.request
from pathlib import Path

import pytest

from tests.support.service import Service

pytestmark = [pytest.mark.e2e]
HOSTS = ("SPANWISE_RECEIVER__GRPC__HOST", "SPANWISE_RECEIVER__HTTP__HOST", "SPANWISE_ADMIN__HOST")


def test_two_colons_in_the_environment_are_a_host(tmp_path: Path) -> None:
    assert socket.has_ipv6
    service = Service(tmp_path / "data", environment=dict.fromkeys(HOSTS, "::")).start()
    try:
        port = service.admin.rpartition(":")[2]
        for host in ("[::1]", "127.0.0.1"):
            with urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=10) as answer:
                assert answer.status == 200
        for listener in (service.grpc, service.http):
            port = listener.removesuffix("/v1/traces").rpartition(":")[2]
            socket.create_connection(("::1", int(port)), 10).close()
    finally:
        service.stop()
