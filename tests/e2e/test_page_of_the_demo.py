"""The page over a running service that the demo's agent talks to, in a real browser."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.async_api import Request, expect

from collector.commands.demo_agent import Agent
from collector.commands.demo_story import GOOD, WORSE
from tests.support.browser import browsing, needs_chromium
from tests.support.service import Service

EXEMPLAR = re.compile(r'outcome="fail".* # \{.*trace_id="([0-9a-f]{32})"')
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), needs_chromium]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """After some good sessions and some bad ones."""
    data = tmp_path_factory.mktemp("page") / "data"
    with Service(data, "windows.trace.root_grace=1s") as running:
        for first, release in ((1, GOOD), (7, WORSE)):
            with closing(Agent(f"http://{running.grpc}", release)) as agent:
                for number in range(first, first + 6):
                    agent.serve(number)
        running.wait_for("good and bad sessions", lambda: has_both(running))
        yield running


def has_both(service: Service) -> bool:
    sessions = service.get("/api/v1/sessions?limit=100")["items"]
    scores = [each["reliability"] for each in sessions if each["reliability"] is not None]
    return bool(scores) and min(scores) < 0.3 and max(scores) > 0.6


def failure(request: Request) -> list[str]:
    """A refresh that is under way when a link is followed is given up by the browser: that is not a failure."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]


async def test_from_the_agents_to_a_bad_session_to_its_trace_without_a_complaint(
    service: Service,
) -> None:
    complaints: list[str] = []
    async with browsing(viewport={"width": 1100, "height": 800}) as page:
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda failed: complaints.extend(failure(failed)))

        await page.goto(service.admin + "/")
        await expect(page.locator("#agents tr.version")).to_have_count(2)  # a release each
        await expect(page.locator("#agents")).to_contain_text("order-desk")
        await page.click("#agents .number a >> nth=0")
        await page.click("#sessions tbody tr a >> nth=0")
        await expect(page.locator("h1")).to_have_text(re.compile(r"Session demo-\d+"))
        await expect(page.locator("article").first).to_contain_text("I could not find that")
        await page.click("article h3 a >> nth=0")
        await expect(page.locator("h1")).to_have_text(re.compile(r"Trace [0-9a-f]{32}"))
        await expect(page.locator("main")).to_contain_text("order service did not answer")
        await page.click("summary >> nth=1")
        await expect(page.locator(".tree details[open]")).to_contain_text("gen_ai.operation.name")

    assert complaints == []


async def test_an_exemplar_leads_to_its_trace_and_from_there_to_its_session(
    service: Service,
) -> None:
    trace_id = service.wait_for("an exemplar of a fail", lambda: failing(service))
    async with browsing() as page:
        await page.goto(f"{service.admin}/trace?id={trace_id}")
        await expect(page.locator("h1")).to_have_text(f"Trace {trace_id}")
        await expect(page.locator("table.signals .passed .poor").first).to_have_text("no")
        named = await page.locator(".trail a[href^='/session?']").inner_text()
        await page.click(".trail a[href^='/session?']")

        await expect(page.locator("h1")).to_have_text(f"Session {named}")
        await expect(page.locator(f"article#trace-{trace_id}")).to_be_visible()


def failing(service: Service) -> str | None:
    """The trace that an exemplar of a failed evaluation names, as Prometheus would scrape it."""
    wish = {"accept": "application/openmetrics-text; version=1.0.0"}
    found = EXEMPLAR.search(service.text("/metrics", wish))
    return found[1] if found else None
