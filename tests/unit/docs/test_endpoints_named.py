"""Wherever an endpoint is named, its protocol is named too: what exporters speak by default differs."""

import re
from pathlib import Path

import pytest
import yaml

from collector.base.net import exporter_settings
from collector.commands.run import say
from collector.config.tree import Config
from collector.receiver.inflate import BY_NAME
from collector.service.app import Endpoints
from tests.support.table import for_each

ROOT = Path(__file__).parents[3]
TEXTS = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "helm").rglob("*.txt"),
    *(ROOT / "helm").rglob("*.md"),
    ROOT / "README.md",
    ROOT / "compose.yaml",
]


def test_every_endpoint_stands_beside_its_protocol() -> None:
    bare = [
        f"{text.name}: {line}"
        for text in TEXTS
        for line in text.read_text().splitlines()
        if "OTEL_EXPORTER_OTLP_ENDPOINT=" in line and "OTEL_EXPORTER_OTLP_PROTOCOL=" not in line
    ]

    assert bare == []
    assert sum(len(re.findall("OTLP_ENDPOINT=", text.read_text())) for text in TEXTS) > 10


@pytest.mark.parametrize(
    ("host", "tls", "shown"),
    [
        ("127.0.0.1", False, "http://127.0.0.1"),
        ("0.0.0.0", False, "http://127.0.0.1"),
        ("::1", True, "https://[::1]"),
    ],
)
def test_both_protocols_are_named_with_their_ports(host: str, *, tls: bool, shown: str) -> None:
    over_grpc, over_http = exporter_settings(host=host, grpc=4317, http=4318, tls=tls)

    endpoint, protocol = f"OTEL_EXPORTER_OTLP_ENDPOINT={shown}:", "OTEL_EXPORTER_OTLP_PROTOCOL="
    assert over_grpc == f"{endpoint}4317 {protocol}grpc"
    assert over_http == f"{endpoint}4318 {protocol}http/protobuf"


def test_the_start_lines_name_the_real_ports(capsys: pytest.CaptureFixture[str]) -> None:
    say(Endpoints(grpc="127.0.0.1:1", http="127.0.0.1:2", admin="127.0.0.1:3"), Config())

    said = capsys.readouterr().out
    commands = " ".join(said.replace("\\\n", "").split())
    assert "OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_PROTOCOL=grpc python" in commands
    assert "OTLP_ENDPOINT=http://127.0.0.1:2 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in commands


def test_the_collectors_page_shows_both_ports_and_no_zstd_over_grpc() -> None:
    page = (ROOT / "docs" / "collector.md").read_text()
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    exporters = yaml.safe_load(shown)["exporters"]

    assert exporters["otlp/spanwise"]["endpoint"].endswith(":4317")
    assert exporters["otlp/spanwise"]["compression"] == "gzip"
    assert exporters["otlphttp/spanwise"]["endpoint"].endswith(":4318")
    assert exporters["otlphttp/spanwise"]["compression"] in BY_NAME


@for_each(
    "page",
    [*(ROOT / "docs" / "agents").glob("*.md"), *(ROOT / "docs" / "frameworks").glob("*.md")],
)
def test_a_page_that_names_one_port_names_the_other(page: Path) -> None:
    text = page.read_text()

    assert ("4317" in text) == ("4318" in text)
