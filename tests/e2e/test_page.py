"""The page in a real browser."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from collector.api.admin import AdminServer
from collector.base.families import RuntimeFamilies
from collector.base.telemetry import Telemetry
from collector.config.tree import Admin
from tests.support import api_records as make
from tests.support.api_stand import Stand, trace_signals
from tests.support.browser import browsing, needs_chromium
from tests.support.standings import standings

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), needs_chromium]


@dataclass
class Visit:
    stand: Stand
    base: str
    page: Page
    complaints: list[str]
    """What the browser's console said, and every request that went elsewhere."""


@asynccontextmanager
async def visit(folder: Path) -> AsyncGenerator[Visit]:
    stand = Stand(folder)
    server = AdminServer(stand.api.app, Admin(port=0), RuntimeFamilies(Telemetry()))
    server.bind()
    base = f"http://127.0.0.1:{server.port}"
    stopping = asyncio.Event()
    complaints: list[str] = []
    async with asyncio.timeout(200), asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run(stopping))
        async with browsing(viewport={"width": 1100, "height": 500}) as page:
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "request",
                lambda request: (
                    None
                    if request.url.startswith((base, "data:"))
                    else complaints.append(request.url)
                ),
            )
            yield Visit(stand, base, page, complaints)
        stopping.set()
    stand.close()


def fill(stand: Stand) -> None:
    stand.standings = standings(0.42)
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    for number in range(1, 30):
        of = make.trace(
            number, session_id=f"s-{number % 25}", input=hostile if number < 3 else "hi"
        )
        stand.take_traces(make.trace_value(of))
        stand.take_signals(
            *trace_signals(of, [("step_efficiency", 0.3), ("tool_correctness", 1.0)]),
            make.session_signal(of, "agent_reliability", 0.42, revision=number),
        )


async def test_what_agents_say_is_text(tmp_path: Path) -> None:
    async with visit(tmp_path) as seen:
        fill(seen.stand)
        for path in (
            "/session?id=s-1",
            f"/trace?id={1:032x}",
            "/session?id=<script>alert(3)</script>",
        ):
            await seen.page.goto(seen.base + path)
            assert await seen.page.locator("main script, main img").count() == 0
            if path.startswith("/trace"):
                await expect(seen.page.locator(".tree")).to_contain_text("rain <b>soon</b>")
        said = await seen.page.locator("main").inner_text()

        assert "<script>alert(3)</script>" in said
        # The last address is a 404, which browsers note; nothing else was noted.
        assert [line for line in seen.complaints if "404" not in line] == []


async def test_the_refresh_shows_what_is_new_and_leaves_alone_what_one_is_at(
    tmp_path: Path,
) -> None:
    """The scroll, what is open, and what is typed."""
    async with visit(tmp_path) as seen:
        fill(seen.stand)
        page = seen.page
        await page.clock.install()

        async def refreshed() -> None:
            async with page.expect_response(lambda response: response.url.startswith(seen.base)):
                await page.clock.run_for(5100)

        await page.goto(f"{seen.base}/sessions?sort=newest")
        await page.evaluate("scrollTo(0, 600)")
        seen.stand.take_traces(make.trace_value(make.trace(99, session_id="brand-new")))
        await refreshed()
        await expect(page.locator("#sessions tbody tr").first).to_contain_text("brand-new")
        assert await page.evaluate("scrollY") == 600

        of = make.trace(1)
        await page.goto(f"{seen.base}/trace?id={of.trace_id}")
        await page.click("summary >> nth=1")
        seen.stand.take_signals(make.signal(of, "coherence", score=0.11))
        await refreshed()
        await expect(page.locator("main")).to_contain_text("0.11")
        await expect(page.locator("details[open]")).to_have_count(1)

        await page.goto(f"{seen.base}/sessions")
        await page.click("input[name=q]")
        await page.keyboard.type("half a wo")
        await page.clock.run_for(11_000)
        assert await page.input_value("input[name=q]") == "half a wo"
        assert seen.complaints == []
