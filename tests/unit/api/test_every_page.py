"""What holds for every page: its path behind a proxy, the zone of its times, its help and links."""

import html
import re
from collections.abc import Callable
from datetime import datetime
from functools import partial

import pytest

from collector.api.base_path import forwarded_prefix
from collector.api.viewer_zone import COOKIE
from collector.base.errors import ConfigError
from collector.config.load import load
from collector.slo.alerts import ALERTS
from collector.slo.rules import rules
from scripts.help_page import TEMPLATE, help_template
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand, filled
from tests.support.table import for_each

LINK = re.compile(r'(?:href|action)="([^"#]*)')
PREFIX = "/tools/spanwise"
BELOW = f"admin.base_path={PREFIX}"
Ask = Callable[[str], tuple[str, dict[str, str]]]


def whole(path: str, *, header: str = "") -> tuple[str, dict[str, str]]:
    return path, {"x-forwarded-prefix": header} if header else {}


def stripped(path: str, *, header: str = "") -> tuple[str, dict[str, str]]:
    return whole(path.removeprefix(PREFIX) or "/", header=header)


"""What arrives here of a path that a browser asks the proxy for, and with which headers."""


async def crawled(stand: Stand, ask: Ask) -> set[str]:
    """Every address that pages lead to, as the browser sees it; one of each path and its parameters is answered."""
    seen: set[str] = set()
    kinds: set[str] = set()
    waiting = [f"{PREFIX}/", f"{PREFIX}/no/such/page"]
    async with stand.client() as client:
        while waiting:
            address = waiting.pop()
            path, headers = ask(address)
            answer = await client.get(path, headers={**headers, "accept": "text/html"})
            assert answer.status_code == (404 if "/no/such" in address else 200), address
            for found in LINK.findall(answer.text.partition("<script")[0]):
                link = html.unescape(found)
                if link and not link.startswith("data:"):
                    seen.add(link)
                    if (kind := re.sub("=[^&]*", "", link)) not in kinds:
                        kinds.add(kind)
                        waiting.append(link)
    return seen


@pytest.mark.parametrize(
    ("setting", "ask"),
    [
        ([BELOW], whole),
        ([f"{BELOW}/"], whole),
        ([BELOW], partial(whole, header=f"{PREFIX}/")),
        ([BELOW], partial(stripped, header=PREFIX)),
        ([BELOW], stripped),
        ([], partial(stripped, header=PREFIX)),
    ],
)
async def test_every_link_stays_below_the_prefix_and_is_answered(
    new_stand: NewStand, setting: list[str], ask: Ask
) -> None:
    stand = filled(new_stand(*setting))
    links = await crawled(stand, ask)

    assert {each for each in links if not each.startswith(f"{PREFIX}/")} == set()
    parts = {each.removeprefix(PREFIX).partition("?")[0] for each in links}
    assert {"/", "/sessions", "/agent", "/session", "/trace", "/health"} <= parts


async def test_where_a_page_leads_on_its_own_is_below_the_prefix(new_stand: NewStand) -> None:
    stand = new_stand(BELOW)
    answers = [
        await stand.get(PREFIX + path)
        for path in ("/sessions?agent=&service=shop", "/?service=shop&agent=helper")
    ]
    alone = await stand.get(f"{PREFIX}?service=shop", **{"x-forwarded-prefix": "/outer"})

    for answer in answers:
        assert answer.status_code in (303, 307)
        assert answer.headers["location"].startswith(f"{PREFIX}/")
    assert (alone.status_code, alone.headers["location"]) == (307, f"/outer{PREFIX}/?service=shop")


async def test_probes_and_metrics_answer_at_the_root_and_below_where_all_else_needs_a_token(
    new_stand: NewStand,
) -> None:
    stand = new_stand(BELOW, "admin.bearer_tokens=[secret]")

    async def status(path: str) -> int:
        return (await stand.get(path)).status_code

    for path in ("/healthz", "/metrics"):
        assert [await status(path), await status(PREFIX + path)] == [200, 200]
        assert await status(f"{PREFIX}x{path}") in (401, 404)
    assert await status(f"{PREFIX}/api/v1/agents") == 401


@for_each(
    ("header", "prefix"),
    [
        ("/outer/, /inner", "/outer"),
        *(
            (each, "")
            for each in ("//evil.example", "https://evil.example", "/a//b", '/"><script>')
        ),
        *((each, "") for each in ("/a b", "a", "/", "/..", "/a/./b", "/x" * 11)),
    ],
)
def test_what_is_no_path_is_no_prefix_and_the_outermost_proxy_says_it(
    header: str, prefix: str
) -> None:
    assert forwarded_prefix(header) == prefix


@for_each("text", ["spanwise", "//spanwise", "/a b", "/a/..", "https://a.example/x"])
def test_a_setting_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"admin\.base_path: expected a path such as /spanwise"):
        load([], {}, [f"admin.base_path={text}"])


UTC_TIME, OSLO_TIME, NEPAL_TIME = (
    "2023-11-14 22:13:21",
    "2023-11-14 23:13:21",
    "2023-11-15 03:58:21",
)
SESSION = "/session?id=s-1"


@for_each(
    ("cookie", "time", "footer"),
    [
        ("", UTC_TIME, "Times are UTC"),
        ("Europe/Oslo", OSLO_TIME, "those of Europe/Oslo"),
        ("Europe%2FOslo", OSLO_TIME, "those of Europe/Oslo"),
        ("Asia/Kathmandu", NEPAL_TIME, "those of Asia/Kathmandu"),
        ("Etc/UTC", UTC_TIME, "those of Etc/UTC"),
        *((each, UTC_TIME, "Times are UTC") for each in ("Middle/Earth", "Europe", "<b>")),
        *((each, UTC_TIME, "Times are UTC") for each in ("../../etc/passwd", "A" * 4_000)),
    ],
)
async def test_a_page_is_in_the_zone_of_its_viewer(
    filled_stand: Stand, cookie: str, time: str, footer: str
) -> None:
    page = await filled_stand.text(SESSION, cookie=f"{COOKIE}={cookie}")

    assert f'title="{UTC_TIME} UTC">{time}</time>' in page
    assert footer in page


@for_each(
    ("age", "words"),
    [(18, "18 s ago"), (150, "2 min ago"), (7300, "2 h ago"), (200_000, "2 d ago"), (-5, None)],
)
async def test_a_moment_has_how_long_ago_it_is_beside_it(
    filled_stand: Stand, age: int, words: str | None
) -> None:
    filled_stand.time = datetime.fromisoformat(f"{UTC_TIME}+00:00").timestamp() + age

    page = await filled_stand.text(SESSION)

    shown = f'title="{UTC_TIME} UTC">{UTC_TIME}</time>'
    assert (f'{shown} <small class="ago">{words}</small>' in page) == (words is not None)


async def test_charts_are_in_the_same_zone_and_the_api_and_files_are_utc(
    filled_stand: Stand,
) -> None:
    page, oslo = "/agent?service=support-bot&agent=planner&range=15m", f"{COOKIE}=Europe/Oslo"

    assert "22:13" in await filled_stand.text(page)
    shown = await filled_stand.text(page, cookie=oslo)
    assert (">22:1" in shown, ">23:1" in shown) == (False, True)
    for path in ("/api/v1/sessions", "/api/v1/sessions?format=csv"):
        assert await filled_stand.text(path) == await filled_stand.text(path, cookie=oslo)


OF = make.trace(1)


def test_the_template_is_not_stale() -> None:
    assert TEMPLATE.read_text("utf-8") == help_template(), "run `python -m scripts.docs`"


async def test_every_runbook_of_the_rules_is_a_heading_of_the_help(filled_stand: Stand) -> None:
    page = await filled_stand.text("/help")
    headings = set(re.findall(r'<h3 id="(\w+)">', page))

    for group in rules(0.9):
        for rule in group["rules"]:
            if "annotations" in rule:
                address, _, anchor = rule["annotations"]["runbook"].partition("#")
                assert address == "http://127.0.0.1:4390/help"
                assert anchor in headings
    assert len(headings) == len(ALERTS)


async def test_its_links_stay_on_the_page_or_lead_out_and_every_page_leads_to_it(
    filled_stand: Stand,
) -> None:
    page = await filled_stand.text("/help")
    main = page[page.index("<main") : page.index("</main>")]
    anchors = set(re.findall(r'id="([^"]+)"', main))

    for link in re.findall(r'href="([^"]+)"', main):
        assert link.startswith("http") or link.removeprefix("#") in anchors
    assert "\n| " not in main
    for address in ("/", "/sessions", "/health"):
        assert '<a href="/help">What alerts mean</a>' in await filled_stand.text(address)


@pytest.mark.parametrize(
    ("setting", "page", "link"),
    [
        (
            "links.trace=https://traces.example.com/t/{trace_id}?x=1",
            f"/trace?id={OF.trace_id}",
            f'href="https://traces.example.com/t/{OF.trace_id}?x=1" rel="noreferrer"',
        ),
        (
            "links.agent=https://grafana.example.com/d/x?var-service={service}&var-agent={agent}",
            f"/agent?service={OF.service}&agent={OF.agent}",
            (
                f'href="https://grafana.example.com/d/x?var-service={OF.service}&amp;'
                f'var-agent={OF.agent}" rel="noreferrer">Dashboard</a>'
            ),
        ),
    ],
)
async def test_a_page_leads_to_the_users_backend_where_a_template_says_so(
    new_stand: NewStand, filled_stand: Stand, setting: str, page: str, link: str
) -> None:
    assert link in (await filled(new_stand(setting)).get(page)).text
    without = await filled_stand.text(page)
    assert "in your backend" not in without
    assert ">Dashboard</a>" not in without


@for_each(
    ("key", "link", "name"),
    [
        ("trace", "https://host/trace", "trace_id"),
        ("trace", "{trace_id}", "trace_id"),
        ("trace", "https://host/{trace_id}/{x}", "trace_id"),
        ("agent", "https://host/{service}", "agent"),
        ("agent", "https://host/{agent}/{trace_id}", "agent"),
    ],
)
def test_a_template_without_its_name_is_refused(key: str, link: str, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^links\.{key}: expected a URL with \{{{name}\}}"):
        load([], {}, [], {"links": {key: link}})
