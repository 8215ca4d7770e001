"""The picture of docs/forwarding.md: what the page Health says of the traces that were sent on.

python -m scripts.forward_picture [FILE]
"""

import hashlib
import json
import tempfile
from pathlib import Path

from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from playwright.sync_api import sync_playwright

from scripts.arguments import path_argument
from scripts.frameworks import ROOT
from scripts.pictures import ARGUMENTS, CHROMIUM
from scripts.webp import webp
from tests.support.otlp import request, span
from tests.support.sender import send
from tests.support.service import Service

FILE = ROOT / "docs" / "pictures" / "front" / "forwarding.webp"
WIDTH = 900
AGENTS = {"order-desk": 120, "refunds": 80, "search": 40}
"""Traces of each; one in nine ends in an error."""
KEEP = {"new_versions": 0, "slow": None, "wait": "2s"}
HEADING = "h2:has-text('Forwarded in 24 hours')"


def turn(agent: str, number: int) -> Span:
    """A trace of one span."""
    name = f"{agent} {number}".encode()
    made = span(hashlib.sha256(name).digest()[:16], 1)
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    for key, value in said.items():
        made.attributes.add(key=key).value.string_value = value
    if number % 9 == 0:
        made.status.code = Status.STATUS_CODE_ERROR
    return made


def take() -> bytes:
    """The table, with its heading."""
    with tempfile.TemporaryDirectory(prefix="spanwise-pictures-") as home:
        backend = Service(Path(home) / "backend", workers=0)
        with backend, sync_playwright() as playwright:
            forward = {"endpoint": backend.grpc, "keep": KEEP}
            settings = (f"forward={json.dumps(forward)}", "windows.trace.root_grace=1s")
            with Service(Path(home) / "data", *settings, workers=0) as service:
                for agent, count in AGENTS.items():
                    spans = [turn(agent, each) for each in range(count)]
                    send(service.grpc, request(*spans, service="shop").SerializeToString())
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
                page = browser.new_page(viewport={"width": WIDTH, "height": 800})
                while _shown(service) < sum(AGENTS.values()):
                    page.wait_for_timeout(1000)
                page.goto(f"{service.admin}/health")
                while page.locator(HEADING).count() == 0:  # the index reads what was decided
                    page.wait_for_timeout(3000)
                    page.reload()
                heading = page.locator(HEADING).bounding_box() or {}
                table = page.locator(f"{HEADING} + div").bounding_box() or {}
                top, height = heading["y"] - 8, table["y"] + table["height"] - heading["y"] + 16
                return webp(page, {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1})


def _shown(service: Service) -> float:
    """Traces that are decided."""
    name = "spanwise_forward_traces_total{"
    return sum(value for each, value in service.metrics().items() if each.startswith(name))


def main() -> None:
    """Take it."""
    file: Path = path_argument(__doc__, FILE)
    file.write_bytes(take())


if __name__ == "__main__":
    main()
