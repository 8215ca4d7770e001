"""The picture of the documentation's first page: the demo's agent a minute after a release made it worse.

python -m scripts.front_picture [FILE]
"""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from collector.commands.demo_agent import AGENT, SERVICE
from scripts.arguments import path_argument
from scripts.frameworks import ROOT
from scripts.pictures import ARGUMENTS, CHROMIUM
from scripts.webp import webp
from tests.support.service import Service

FILE = ROOT / "docs" / "pictures" / "front" / "agent.webp"
VIEW = {"width": 1100, "height": 1000}
PORTS = {
    "SPANWISE_RECEIVER__GRPC__PORT": "0",
    "SPANWISE_RECEIVER__HTTP__PORT": "0",
    "SPANWISE_ADMIN__PORT": "0",
}
STANDS = 20.0
"""Seconds after the alert: the charts show the drop by then."""


def take() -> bytes:
    """The agent's page while its fault stands."""
    with (
        tempfile.TemporaryDirectory(prefix="spanwise-pictures-") as home,
        Service(Path(home) / "unused", command="demo", environment=PORTS) as demo,
        sync_playwright() as playwright,
    ):
        demo.wait_for("the fault", lambda: "  fault " in demo.output.read_text(), timeout=300)
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS).new_page(
            viewport={"width": VIEW["width"], "height": VIEW["height"]}
        )
        page.wait_for_timeout(1000 * STANDS)
        page.goto(f"{demo.admin}/agent?service={SERVICE}&agent={AGENT}&range=15m")
        return webp(page)


def main() -> None:
    """Take it."""
    file = path_argument(__doc__, FILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(take())


if __name__ == "__main__":
    main()
