"""The pictures of docs/agents and docs/frameworks: the page of the trace that each of them shows.

    python -m scripts.doc_pictures [--only WORD] [FOLDER]

A service of its own, on free ports and over a temporary folder, is sent every recording; then Chromium takes the upper
part of the page of each trace, its scores and its conversation, as a WebP file. The files are committed: docs/pictures.
A page without a recording has no picture.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE
from scripts.frameworks import ROOT, Framework, earliest, files, frameworks
from scripts.pictures import ARGUMENTS, CHROMIUM
from scripts.webp import webp
from tests.support.recordings import requests
from tests.support.sender import send
from tests.support.service import Service

FOLDER = ROOT / "docs" / "pictures"
AGENTS = ROOT / "docs" / "agents"
WIDTH = 900
HEIGHT = 1_300
"""Pixels, at most: a longer conversation ends between two of its lines."""
SETTINGS = ("windows.trace.root_grace=3s", "windows.trace.idle=8s")
_NAMED = re.compile(r"`(tests/data/captures_logs/\S+?)(?:\.logs)?\.otlp`")
_END = """most => {
  const top = document.querySelector("main").getBoundingClientRect().top;
  const ends = [...document.querySelectorAll("table.signals, .talk > li")].map(e => e.getBoundingClientRect().bottom);
  return [top, Math.max(...ends.filter(end => end - top < most))];
}"""


class Shown(NamedTuple):
    """What the page of an agent or a framework shows."""

    files: list[Path]
    framework: Framework | None = None

    def trace_id(self) -> str:
        """The trace on the picture: that of a framework's page, or the earliest of an agent's."""
        return earliest(self.files) if self.framework is None else self.framework.shown()


def shown() -> Mapping[str, Shown]:
    """Of each page that has a recording, by its name; an agent's page names its recording in its text."""
    found = {name: Shown(files(each.path()), each) for name, each in frameworks().items()}
    for page in sorted(AGENTS.glob("*.md")):
        if named := _NAMED.search(page.read_text("utf-8")):
            spans = ROOT / f"{named[1]}.otlp"
            logs = spans.with_suffix(".logs.otlp")
            own = [each for each in (spans, logs) if each.exists()]
            found[page.stem] = Shown(own)
    return found


def take(wanted: Mapping[str, Shown], folder: Path) -> list[Path]:
    """A picture of each page, named for it."""
    with (
        tempfile.TemporaryDirectory(prefix="spanwise-pictures-") as home,
        Service(Path(home) / "data", *SETTINGS) as service,
        sync_playwright() as playwright,
    ):
        for each in wanted.values():
            for path in each.files:
                service_of = LOGS_SERVICE if path.name.endswith(".logs.otlp") else TRACE_SERVICE
                send(service.grpc, *requests(path), method=service_of.method)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        made: list[Path] = []
        for name, each in wanted.items():
            trace_id = each.trace_id()
            service.shown(trace_id)
            page.goto(f"{service.admin}/trace?id={trace_id}")
            made.append(folder / f"{name}.webp")
            made[-1].write_bytes(picture(page))
        browser.close()
    return made


def picture(page: Page) -> bytes:
    """The upper part of the page that is open, between two of its lines, as WebP.

    Raises:
        ValueError: it is too large whatever the quality.
    """
    top, end = page.evaluate(_END, HEIGHT)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": end - top + 1, "scale": 1}
    return webp(page, clip)


def main() -> None:
    """Take them all, or those whose page's name holds a word."""
    parser = argparse.ArgumentParser(prog="python -m scripts.doc_pictures")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", default="", help="pages whose name holds this word")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    made = take({name: each for name, each in shown().items() if given.only in name}, given.folder)
    sys.stdout.write(f"{len(made)} pictures in {given.folder}\n")


if __name__ == "__main__":
    main()
