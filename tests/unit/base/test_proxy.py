"""Which hosts are reached through the proxy of the environment."""

import os

import pytest

from collector.base.net import spare_loopback
from collector.commands.cli import main
from collector.otlp.client import proxy_for

NAMES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that it is as before after the test
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3129")
    monkeypatch.setenv("NO_PROXY", "collector,.svc.cluster.local")


@pytest.mark.parametrize(
    ("host", "tls", "expected"),
    [
        ("backend.example", False, "http://proxy:3128"),
        ("backend.example", True, "http://proxy:3129"),
        ("collector", False, None),
        ("otel.observability.svc.cluster.local", True, None),
        ("localhost", False, None),
        ("127.0.0.1", False, None),
        ("127.8.8.8", True, None),
        ("::1", False, None),
    ],
)
def test_loopback_and_what_no_proxy_names_are_reached_directly(
    host: str, tls: bool, expected: str | None
) -> None:
    assert proxy_for(host, tls=tls) == expected


def test_without_a_proxy_all_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTP_PROXY")

    assert proxy_for("backend.example", tls=False) is None


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ({}, "localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "a, .b,localhost"}, "a,.b,localhost,127.0.0.1,::1"),
        ({"no_proxy": "a", "NO_PROXY": "b"}, "a,localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_libraries_are_set_to_spare_loopback(given: dict[str, str], then: str) -> None:
    environ = dict(given)

    spare_loopback(environ)

    assert environ == {"no_proxy": then, "NO_PROXY": then}


def test_each_command_spares_loopback() -> None:
    assert main(["--version"]) == 0

    assert os.environ["no_proxy"] == "collector,.svc.cluster.local,localhost,127.0.0.1,::1"
