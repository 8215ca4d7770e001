"""The pictures of docs/outlets: a trace in a real Phoenix and in a real MLflow, with the scores that Spanwise wrote.

    python -m tests.support.tools.tool      # both, each in an environment of its own
    python -m scripts.outlet_pictures [FOLDER]

Each tool is started over a temporary folder. A service sends it the spans of a recording (`forward`) and the scores
(`sinks.<tool>`); then Chromium opens the trace. The files are committed: docs/outlets/pictures.
"""

import argparse
import base64
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

from scripts.frameworks import ROOT, earliest
from scripts.pictures import ARGUMENTS, CHROMIUM
from scripts.webp import webp
from tests.support.recordings import requests
from tests.support.sender import send
from tests.support.service import Service
from tests.support.tools import mlflow, phoenix
from tests.support.tools.tool import MLFLOW, PHOENIX, Tool, serve

FOLDER = ROOT / "docs" / "outlets" / "pictures"
RECORDING = ROOT / "tests" / "data" / "captures" / "langgraph_oi" / "session.otlp"
VIEW = (1280, 760)
SETTLES = 8000
"""Milliseconds until a page has drawn itself."""
SETTINGS = ("windows.trace.root_grace=1s", "windows.session.idle=3s")
PROJECT = base64.b64encode(b"Project:1").decode()


class Shown(NamedTuple):
    """A tool and the page of a trace in it."""

    tool: Tool
    path: str
    settings: Callable[[str], Sequence[str]]
    scores: Callable[[str], Sequence[object]]
    opens: str | None = None
    """The words behind which the scores are."""


def _forward(url: str) -> list[str]:
    return [f"forward.endpoint={url}/v1/traces", "forward.protocol=http"]


def _to_phoenix(url: str) -> Sequence[str]:
    return [f"sinks.phoenix.endpoint={url}", *_forward(url)]


def _annotations(url: str) -> Sequence[object]:
    return phoenix.annotations_of(url, "trace")


def _to_mlflow(url: str) -> Sequence[str]:
    header = "forward.headers.x-mlflow-experiment-id=0"
    return [f"sinks.mlflow.endpoint={url}", *_forward(url), header]


SHOWN: dict[str, Shown] = {
    "phoenix": Shown(
        PHOENIX,
        f"/projects/{PROJECT}/traces/{{trace_id}}",
        _to_phoenix,
        _annotations,
    ),
    "mlflow": Shown(
        MLFLOW,
        "/#/experiments/0/traces?selectedEvaluationId=tr-{trace_id}",
        _to_mlflow,
        mlflow.assessments,
        "Assess",
    ),
}


def take(name: str, home: Path) -> bytes:
    """The picture of a tool."""
    shown = SHOWN[name]
    (home / name).mkdir()
    server = serve(shown.tool, home / name)
    try:
        with Service(home / f"{name}-data", *SETTINGS, *shown.settings(server.url)) as service:
            send(service.grpc, *requests(RECORDING))
            service.wait_for("the scores", lambda: len(shown.scores(server.url)) >= 4)
        return _picture(
            f"{server.url}{shown.path.format(trace_id=earliest([RECORDING]))}", shown.opens
        )
    finally:
        server.stop()


def _picture(address: str, opens: str | None) -> bytes:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": VIEW[0], "height": VIEW[1]})
        page.goto(address)
        page.wait_for_timeout(SETTLES)
        if opens is not None:
            for frame in page.frames:
                if found := frame.get_by_text(opens).all():
                    found[-1].click(force=True)
                    page.wait_for_timeout(SETTLES)
        return webp(page)


def main() -> None:
    """Take both."""
    parser = argparse.ArgumentParser(prog="python -m scripts.outlet_pictures")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--only", default="", help="tools whose name holds this word")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        if given.only in name:
            with tempfile.TemporaryDirectory(prefix="spanwise-pictures-") as home:
                (given.folder / f"{name}.webp").write_bytes(take(name, Path(home)))
            sys.stdout.write(f"{given.folder / name}.webp\n")


if __name__ == "__main__":
    main()
