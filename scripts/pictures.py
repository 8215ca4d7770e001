"""Pictures of every page, to be looked at: light and dark, wide and narrow. They are not committed.

    python -m scripts.pictures [--only WORD] DIR

A service of its own, on free ports and over a temporary folder, is sent what the demo's agent sends (a good release,
then a worse one), recordings of real frameworks, spans without content and a trace that runs away; then Chromium opens
each address of `PAGES`. A page is added by a line there.
"""

import argparse
import itertools
import json
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

from collector.base.clock import wall
from collector.commands.demo_agent import Agent
from collector.commands.demo_story import GOOD, WORSE
from tests.support.blinding import without_content
from tests.support.dialect_spans import SpanSpec, request
from tests.support.recordings import recordings, requests
from tests.support.sender import send
from tests.support.service import Service

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
CAPTURES = Path(__file__).parents[1] / "tests" / "data" / "captures"
SENT = ("langgraph_oi", "oai_agents_oi", "pydantic_ai_v5", "smolagents", "agent_framework")
BLIND = "crewai"
SETTINGS = ("windows.trace.root_grace=1s", "windows.trace.idle=6s", "windows.trace.glance=1s")
CONVERSATIONS = 40
"""Of each release."""

PAGES: Mapping[str, str] = {
    "overview": "/",
    "sessions": "/sessions",
    "sessions-found": "/sessions?q=order&sort=cost",
    "agent": "/agent?service=support-bot&agent=order-desk",
    "compare": "/compare?service=support-bot&agent=order-desk",
    "session-bad": "/session?{bad_session}",
    "session-good": "/session?{good_session}",
    "trace-bad": "/trace?id={bad_trace}",
    "trace-framework": "/trace?id={framework_trace}",
    "trace-running-away": "/trace?id={runaway_trace}",
    "evaluators": "/evaluators",
    "agreement": "/agreement",
    "health": "/health",
    "help": "/help",
    "missing": "/nowhere",
    "missing-trace": "/trace?id=no-such-trace",
}
"""Name of the picture -> address; the words in braces stand in `found`."""
EMPTY: Mapping[str, str] = {"empty-overview": "/", "empty-health": "/health"}
"""The same of a service to which nothing was sent."""
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@contextmanager
def filled() -> Generator[tuple[Service, Mapping[str, str]]]:
    """A service that has scored what was sent, and what the words in the addresses of `PAGES` stand for."""
    with tempfile.TemporaryDirectory(prefix="spanwise-pictures-") as folder:
        home = Path(folder)
        with Service(home / "data", *SETTINGS) as service:
            fill(service, home)
            yield service, found(service)


def fill(service: Service, folder: Path) -> None:
    """Send everything and wait until it is scored."""
    blind = without_content(next(iter(recordings(CAPTURES / BLIND))), folder / "blind.otlp")
    for name in SENT:
        send(
            service.grpc, *(each for path in recordings(CAPTURES / name) for each in requests(path))
        )
    send(service.grpc, *requests(blind))
    for first, release in ((1, GOOD), (1 + CONVERSATIONS, WORSE)):
        with closing(Agent(f"http://{service.grpc}", release)) as agent:
            for number in range(first, first + CONVERSATIONS):
                agent.serve(number)
    send(service.grpc, stuck())
    service.wait_for(
        "everything to be scored", lambda: len(_scored(service)) >= 2 * CONVERSATIONS, 240
    )
    service.wait_for("the runaway to be told", lambda: _runaways(service))
    say(service)


def say(service: Service) -> None:
    """Give every session of the demo a thumb, mostly as it went."""
    demo = [each for each in _scored(service) if each["agent"] == "order-desk"]
    said = [
        {
            "service": each["service"],
            "session_id": each["session_id"],
            "name": "thumb",
            "value": (each["reliability"] >= 0.5) != (number % 9 == 0),
            "comment": "Nobody answered me."
            if number % 4 == 0 and each["reliability"] < 0.5
            else "",
        }
        for number, each in enumerate(demo)
    ]
    address = service.http.removesuffix("/v1/traces") + "/v1/feedback"
    body = json.dumps({"feedback": said}).encode()
    with urllib.request.urlopen(address, data=body, timeout=30):  # noqa: S310 - our own address
        pass
    service.wait_for("the agreement", lambda: service.get("/api/v1/agreement?limit=1")["agreement"])


def found(service: Service) -> dict[str, str]:
    """The worst and the best session of the demo, and traces worth a look."""
    demo = sorted(
        (each for each in _scored(service) if each["agent"] == "order-desk"),
        key=lambda each: (each["reliability"], -each["traces"]),
    )
    bad, good = demo[0], demo[-1]
    whole = service.get(f"/api/v1/sessions/{quote(bad['session_id'], safe='')}")
    framework = next(each for each in _scored(service) if each["agent"] != "order-desk")
    other = service.get(f"/api/v1/sessions/{quote(framework['session_id'], safe='')}")
    return {
        "bad_session": _session(bad),
        "good_session": _session(good),
        "bad_trace": whole["traces"][0]["trace_id"],
        "framework_trace": other["traces"][0]["trace_id"],
        "runaway_trace": _runaways(service)[0]["trace_id"],
    }


def _session(row: Mapping[str, Any]) -> str:
    return f"service={quote(row['service'], safe='')}&id={quote(row['session_id'], safe='')}"


def _scored(service: Service) -> list[dict[str, Any]]:
    sessions = service.get("/api/v1/sessions?limit=500")["items"]
    return [each for each in sessions if each["reliability"] is not None]


def _runaways(service: Service) -> list[dict[str, Any]]:
    """Of the traces that run away; on a busy machine the trace may have closed before it is looked at."""
    told = service.get("/api/v1/signals?evaluator=runaway&limit=500")["items"]
    return [each for each in told if each["success"] is False]


def take(browser: Browser, base: str, addresses: Mapping[str, str], folder: Path) -> list[Path]:
    """A picture of each address in every size and scheme."""
    made: list[Path] = []
    for (size, (width, height)), scheme in itertools.product(SIZES.items(), SCHEMES):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        for name, address in addresses.items():
            page.goto(base + address)
            made.append(folder / f"{name}-{size}-{scheme}.png")
            page.screenshot(path=made[-1], full_page=True)
        page.close()
    return made


def main() -> None:
    """Take them all, or those whose name holds a word."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pictures")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="pictures whose name holds this word")
    given = parser.parse_args()
    if not Path(CHROMIUM).exists():
        parser.error(f"there is no {CHROMIUM}: install it (Debian: apt-get install chromium)")
    given.folder.mkdir(parents=True, exist_ok=True)
    chosen = {name: path for name, path in PAGES.items() if given.only in name}
    empty = {name: path for name, path in EMPTY.items() if given.only in name}
    made: list[Path] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        if empty:
            with tempfile.TemporaryDirectory() as folder, Service(Path(folder) / "data") as service:
                made += take(browser, service.admin, empty, given.folder)
        if chosen:
            with filled() as (service, words):
                addresses = {name: path.format(**words) for name, path in chosen.items()}
                made += take(browser, service.admin, addresses, given.folder)
        browser.close()
    sys.stdout.write(f"{len(made)} pictures in {given.folder}\n")


def stuck() -> bytes:
    """An agent that makes the same call 16 times and does not come to an end: the root of its trace has not come."""
    now = int(wall() * 1000)
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "stock-keeper",
        "gen_ai.conversation.id": "shelf-7",
        "gen_ai.tool.name": "search_shelf",
        "gen_ai.tool.call.arguments": json.dumps({"article": "blue lamp", "shelf": 7}),
        "gen_ai.tool.call.result": "nothing found",
    }
    return request(
        *(
            SpanSpec(id=10 + n, parent=1, attributes=attributes, start=now + n, end=now + n + 1)
            for n in range(16)
        ),
    )


if __name__ == "__main__":
    main()
