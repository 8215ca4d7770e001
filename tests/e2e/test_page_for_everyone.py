"""Every page for everyone: axe has no finding, the keyboard reaches everything, nothing needs JavaScript."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from collector.config.strict_yaml import parse
from evaluators.expectations import Expectations
from scripts.pictures import PAGES, SCHEMES, SIZES, filled
from tests.support.browser import browsing, needs_chromium
from tests.support.command import evaluated
from tests.support.processes import installed
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


async def test_axe_and_the_console_have_nothing_to_say_of_any_page(seen: Seen, axe: str) -> None:
    """Wide and narrow, light and dark."""
    service, words = seen
    found: dict[tuple[str, str, str], list[str]] = {}
    complaints: list[str] = []
    async with browsing() as page:
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
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
                if violations := await page.evaluate(RULES):
                    found[name, size, scheme] = violations

    assert found == {}
    # Some of the pages are answers to what is not there, which browsers note; nothing else was noted.
    assert [line for line in complaints if "404" not in line] == []


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


async def test_the_keyboard_goes_through_the_page_in_order_is_seen_and_skips_to_the_content(
    seen: Seen,
) -> None:
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


async def test_a_downloaded_recording_and_case_are_read_back(seen: Seen, tmp_path: Path) -> None:
    """The recording by `spanwise evaluate`, with the scores that the page shows; the case by the loader."""
    service, words = seen
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
    signals = evaluated(str(recording), "--set", f"expectations={case}")
    offline = {each["evaluator"]: each["score"] for each in signals if each["scope"] == "trace"}
    shown = service.get(f"/api/v1/traces/{words['bad_trace']}")["signals"]
    live = {each["evaluator"]: each["score"] for each in shown}
    assert offline["tool_correctness"] == live["tool_correctness"]
    assert offline["exact_match"] == 1.0
