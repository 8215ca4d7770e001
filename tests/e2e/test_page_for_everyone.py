"""Every page for everyone: axe has no finding, the keyboard reaches everything, nothing needs JavaScript."""

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from collector.config.strict_yaml import parse
from evaluators.expectations import Expectations
from scripts.pictures import CONVERSATIONS, PAGES, SCHEMES, SIZES, filled
from tests.support.browser import browsing, needs_chromium
from tests.support.command import spanwise
from tests.support.node_packages import installed
from tests.support.service import Service

WIDTHS = (390, 768, 1024, 1280)
"""Of a telephone, a tablet, and windows on a desk."""
RULES = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.flatMap(
    rule => rule.nodes.slice(0, 3).map(node => `${rule.id}: ${node.html.slice(0, 160)} ${node.failureSummary}`));
}"""
WIDER = """() => [
  document.documentElement.scrollWidth - innerWidth,
  ...[...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)]"""
"""By how many pixels the page is wider than the window, and each table than its place."""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), needs_chromium]
Seen = tuple[Service, Mapping[str, str]]


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """What `python -m scripts.pictures` takes its pictures of."""
    with filled() as found:
        yield found


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that is run in a page."""
    folder = installed("axe", "the accessibility of pages is")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def test_axe_finds_nothing_on_any_page(seen: Seen, axe: str) -> None:
    """Wide and narrow, light and dark."""
    service, words = seen
    found: dict[tuple[str, str, str], list[str]] = {}
    async with browsing() as page:
        for name, address in PAGES.items():
            await page.goto(service.admin + address.format(**words))
            await page.evaluate(
                "for (const each of document.querySelectorAll('details')) each.open = true"
            )
            await page.evaluate(axe)
            for size, scheme in itertools.product(SIZES, SCHEMES):
                width, height = SIZES[size]
                await page.set_viewport_size({"width": width, "height": height})
                await page.emulate_media(color_scheme=scheme)
                if complaints := await page.evaluate(RULES):
                    found[name, size, scheme] = complaints

    assert found == {}


async def test_no_page_is_wider_than_the_window_and_no_table_wider_than_its_place(
    seen: Seen,
) -> None:
    """Each page at every width. Sideways one scrolls for long names alone, on the narrowest telephone."""
    service, words = seen
    wider: list[tuple[str, int, list[int]]] = []
    async with browsing() as page:
        for name, address in PAGES.items():
            await page.goto(service.admin + address.format(**words))
            for width in (320, *WIDTHS):
                await page.set_viewport_size({"width": width, "height": 800})
                over: list[int] = await page.evaluate(WIDER)
                tables = over[1:] if width > 320 else []
                if over[0] > 0 or max(tables, default=0) > 0:
                    wider.append((name, width, over))

    assert wider == []


async def test_a_score_takes_few_lines_on_a_telephone(seen: Seen) -> None:
    """A row was 230 px tall."""
    service, words = seen
    async with browsing(viewport={"width": 390, "height": 844}) as page:
        await page.goto(service.admin + PAGES["trace-bad"].format(**words))
        heights = await page.evaluate(
            "[...document.querySelectorAll('table.signals tbody tr')].map(row => row.offsetHeight)"
        )

    assert len(heights) > 5
    assert sorted(heights)[len(heights) // 2] < 110
    assert max(heights) < 180


STOP = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const place = at.compareDocumentPosition(window.before || document.body);
  window.before = at;
  return { tag: at.tagName, seen: box.width > 0 && box.height > 0, outline: style.outlineStyle,
           forward: !(place & Node.DOCUMENT_POSITION_FOLLOWING) };
}"""


async def test_the_keyboard_goes_through_the_page_in_order_and_is_seen(seen: Seen) -> None:
    service, words = seen
    async with browsing(viewport={"width": 1100, "height": 800}) as page:
        for name in ("overview", "session-bad", "trace-bad", "evaluators", "health"):
            await page.goto(service.admin + PAGES[name].format(**words))
            await page.keyboard.press("Tab")
            assert await page.locator(":focus").inner_text() == "Skip to content"
            for _ in range(25):
                await page.keyboard.press("Tab")
                stop = await page.evaluate(STOP)
                if stop["tag"] == "BODY":  # the end of the page
                    break
                assert stop["seen"], (name, stop)
                assert stop["outline"] != "none", (name, stop)
                assert stop["forward"], (name, stop)


async def test_the_skip_link_leads_past_the_navigation(seen: Seen) -> None:
    service, _ = seen
    async with browsing() as page:
        await page.goto(service.admin + "/evaluators")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
        await page.keyboard.press("Tab")

        assert await page.evaluate("document.activeElement.closest('main') !== null")


async def test_without_javascript_the_navigation_leads_everywhere(seen: Seen) -> None:
    service, _ = seen
    async with browsing(java_script_enabled=False) as page:
        await page.goto(service.admin + "/")
        for name in ("Evaluators", "Sessions", "Health", "Overview"):
            await page.click(f"nav[aria-label=Main] >> text={name}")
            await expect(page.locator("nav[aria-label=Main] a[aria-current]")).to_have_text(name)

        answer = await page.goto(service.admin + "/nowhere")
        assert answer is not None
        assert answer.status == 404
        await expect(page.locator("h1")).to_have_text("There is nothing at this address")
        await page.click("main a >> text=All agents")
        await expect(page.locator("nav[aria-label=Main] a[aria-current]")).to_have_text("Overview")


async def test_without_javascript_what_is_wrong_is_followed_from_the_overview_to_the_session(
    seen: Seen,
) -> None:
    service, _ = seen
    async with browsing(java_script_enabled=False) as page:
        await page.goto(service.admin + "/")
        await expect(page.locator(".urgent a.go").first).to_have_text("What changed")
        await page.click("#agents a.name >> text=order-desk")
        await expect(page.locator("h1")).to_contain_text("order-desk")
        assert await page.locator("svg.plot").count() >= 4
        await page.click("a.button >> text=Sessions")
        await page.fill("input[name=q]", "A10")
        await page.select_option("select[name=sort]", "newest")
        await page.select_option("select[name=since]", "24h")
        await page.click("form.sessions button")
        kept = {"q=A10", "sort=newest", "since=24h", "agent=order-desk", "service=support-bot"}
        assert kept == set(page.url.partition("?")[2].split("&"))
        questions = await page.locator("main tbody tr").all_inner_texts()
        assert questions
        assert all("A10" in each for each in questions)
        await page.click("main tbody a[href^='/session?'] >> nth=0")

        await expect(page.locator("h1")).to_contain_text("Session")
        await expect(page.locator("main")).to_contain_text("A10")


async def test_without_javascript_the_overview_shows_trends_alarms_and_badges(seen: Seen) -> None:
    service, _ = seen
    async with browsing(java_script_enabled=False) as page:
        await page.goto(service.admin + "/")
        desk = page.locator("#agents tbody", has_text="order-desk")
        await expect(desk.locator(".spark.main path")).to_have_count(1)
        await expect(desk.locator(".spark.alarm path")).to_have_count(1)
        assert await desk.locator("tr.version .who").all_inner_texts() == ["1.5.0", "1.4.2"]
        urgent = page.locator(".urgent > li", has_text="order-desk")
        await expect(urgent).to_contain_text("worse than its own past since")
        blind = page.locator("#agents tbody", has_text="agent-crewai").locator(".blind")
        await expect(blind).to_contain_text("evaluators blind, fixed by unset OPENINFERENCE_HIDE")

        await page.click("nav[aria-label='Time range'] >> text=24h")
        assert page.url.endswith("/?range=24h")
        await expect(page.locator("#agents th >> nth=2")).to_have_text("Last 24h")
        await page.click("#agents .blind a >> nth=0")
        await expect(page.locator("h2#doctor")).to_be_visible()


async def test_without_javascript_the_page_of_an_agent_compares_both_sides_of_a_moment(
    seen: Seen,
) -> None:
    service, _ = seen
    async with browsing(java_script_enabled=False) as page:
        await page.goto(service.admin + PAGES["agent"])
        names = await page.locator("figure.chart figcaption").all_inner_texts()
        charts = ["Reliability", "Drop detector", "Seconds per trace", "Cost per session"]
        assert [each.split("\n")[0].split(" of ")[0] for each in names[:4]] == charts
        await page.click("nav[aria-label='Time range'] >> text=1h")
        await page.click(".moments a >> text=release 1.5.0")
        assert {"range=1h", "agent=order-desk"} <= set(_asked(page.url))
        await expect(page.locator("#changed")).to_contain_text("What changed since 20")
        sides = (
            f"{CONVERSATIONS} sessions since, each score ranked among those of the {CONVERSATIONS}"
        )
        await expect(page.locator("main")).to_contain_text(sides)
        moved = page.locator("#evaluators tbody tr:not(.faint)", has_text="agent reliability")
        await expect(moved.locator(".moved rect.poor")).to_have_count(1)
        await expect(moved.locator(".spark.failing path")).to_have_count(1)
        for side, release in (("Typical before", "1.4.2"), ("The worst since", "1.5.0")):
            shown = page.locator(f"section[aria-label='{side}'] article")
            await expect(shown).to_have_count(3)
            await expect(shown.first).to_contain_text(release)
        await page.click("section[aria-label='The worst since'] article a >> nth=0")

        await expect(page.locator("h1")).to_contain_text("Session demo-")


async def test_without_javascript_sessions_are_sorted_chosen_and_turned_over(seen: Seen) -> None:
    service, _ = seen
    async with browsing(java_script_enabled=False) as page:
        await page.goto(service.admin + "/sessions")
        await expect(page.locator("th[aria-sort]")).to_contain_text("Work")
        first = await _sessions(page)
        await page.click("a[rel=next]")
        assert not set(first) & set(await _sessions(page))
        await page.click("thead a >> text=Cost")
        await expect(page.locator("th[aria-sort=descending]")).to_contain_text("Cost")
        assert set(_asked(page.url)) == {"sort=cost"}

        await page.click("#more summary")
        await page.fill("input[name=version]", "1.5.0")
        await page.fill("input[name=failed]", "tool_correctness")
        await page.fill("input[name=max_reliability]", "0.5")
        await page.click("form.sessions button")
        assert set(_asked(page.url)) == {
            *("version=1.5.0", "failed=tool_correctness", "max_reliability=0.5", "sort=cost")
        }
        assert await page.locator("main tbody tr").count() > 5
        await page.click(".chosen a >> text=version")
        assert "version=1.5.0" not in _asked(page.url)
        await page.select_option("select[name=status]", "unscored")
        await page.click("form.sessions button")
        await expect(page.locator("main")).to_contain_text("No session fits.")
        await page.click("text=Show all")
        assert page.url == service.admin + "/sessions"


async def _sessions(page: Page) -> list[str]:
    """Their addresses: two may have asked the same."""
    found = page.locator("#sessions td.ask a")
    return await found.evaluate_all("all => all.map(each => each.href)")


def _asked(url: str) -> list[str]:
    return url.partition("#")[0].partition("?")[2].split("&")


async def test_without_javascript_a_trace_is_read_folded_and_followed_to_its_spans(
    seen: Seen,
) -> None:
    service, words = seen
    async with browsing(java_script_enabled=False) as page:
        await page.goto(service.admin + PAGES["trace-bad"].format(**words))
        await expect(page.locator(".line.user").first).to_contain_text("A10")
        await expect(page.locator(".line.failed")).to_contain_text("order service did not answer")
        await expect(page.locator(".line.led")).to_contain_text("the step before the first failure")
        await page.click(".evidence a >> nth=0")
        target = page.url.partition("#")[2]
        await page.click(f"[id={target}] summary")
        await expect(page.locator(f"[id={target}] .attributes")).to_contain_text("find_order")

        await page.goto(service.admin + PAGES["trace-framework"].format(**words))
        fold = page.locator("details.more").first
        await fold.locator("summary").click()
        await expect(fold.locator(".opened")).to_be_visible()


async def test_a_downloaded_recording_and_case_are_read_back(seen: Seen, tmp_path: Path) -> None:
    """The recording by `spanwise evaluate`, with the scores that the page shows; the case by the loader."""
    service, words = seen
    trace_id = words["bad_trace"]
    recording, case = tmp_path / "of.otlp", tmp_path / "case.yaml"
    async with browsing() as page:
        await page.goto(service.admin + PAGES["trace-bad"].format(**words))
        for text, file in (("Recording", recording), ("Case for expectations", case)):
            async with page.expect_download() as download:
                await page.click(f"text={text}")
            await (await download.value).save_as(file)

    (entry,) = parse(case.read_text())
    Expectations([entry])
    assert entry["output"].startswith("I am sorry")
    out = tmp_path / "signals.jsonl"
    config = str(_with(tmp_path, case))
    given = ("--format", "jsonl", "--output", str(out), "--config", config)
    done = spanwise("evaluate", str(recording), *given)
    assert done.code == 0, done.err
    offline = {each["evaluator"]: each for each in _lines(out) if each["scope"] == "trace"}
    live = {
        each["evaluator"]: each for each in service.get(f"/api/v1/traces/{trace_id}")["signals"]
    }
    assert offline["tool_correctness"]["score"] == live["tool_correctness"]["score"]
    assert offline["exact_match"]["score"] == 1.0


def _with(folder: Path, case: Path) -> Path:
    config = folder / "spanwise.yaml"
    config.write_text(f"expectations: {case}\n")
    return config


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


HOST = "http://tools.example"
BELOW = "/team/spanwise"


@pytest.mark.parametrize("strips", [True, False])
async def test_a_reader_behind_a_proxy_stays_below_its_path(tmp_path: Path, strips: bool) -> None:
    """The proxy takes the path off and says so in X-Forwarded-Prefix, or passes it on to `admin.base_path`."""
    asked: list[str] = []
    settings = [] if strips else [f"admin.base_path={BELOW}"]
    with Service(tmp_path, *settings) as service:

        async def proxy(route: Route) -> None:
            path = route.request.url.removeprefix(HOST)
            asked.append(path)
            headers = {"x-forwarded-prefix": BELOW} if strips else {}
            passed = path.removeprefix(BELOW) if strips else path
            answer = await route.fetch(url=service.admin + passed, headers=headers, max_redirects=0)
            await route.fulfill(response=answer)

        async with browsing() as page:
            await page.route("**/*", proxy)
            await page.goto(f"{HOST}{BELOW}/")
            for name in ("Sessions", "Evaluators", "Health", "Overview"):
                link = page.get_by_role("navigation").get_by_role("link", name=name)
                await link.click()
                await expect(link).to_have_attribute("aria-current", "page")
            await page.goto(f"{HOST}{BELOW}/trace?id=0f")
            await page.get_by_text("all sessions").click()
            await expect(page).to_have_url(f"{HOST}{BELOW}/sessions")

    assert [each for each in asked if not each.startswith(f"{BELOW}/")] == []
