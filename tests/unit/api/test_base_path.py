"""The page below a path: every link stays below it and is answered, whatever the proxy does with the prefix."""

import html
import re
from collections.abc import Callable

import httpx
import pytest

from collector.api.base_path import forwarded_prefix
from collector.base.errors import ConfigError
from collector.config.load import load
from tests.support.api_stand import NewStand, Stand, filled
from tests.support.table import for_each

LINK = re.compile(r'(?:href|action)="([^"#]*)')
PREFIX = "/tools/spanwise"
BELOW = f"admin.base_path={PREFIX}"
Ask = Callable[[str], tuple[str, dict[str, str]]]
"""What arrives here of a path that a browser asks the proxy for, and with which headers."""


def whole(path: str) -> tuple[str, dict[str, str]]:
    return path, {}


def stripped(path: str) -> tuple[str, dict[str, str]]:
    return path.removeprefix(PREFIX) or "/", {"x-forwarded-prefix": PREFIX}


def stripped_in_silence(path: str) -> tuple[str, dict[str, str]]:
    return path.removeprefix(PREFIX) or "/", {}


def whole_and_by_header(path: str) -> tuple[str, dict[str, str]]:
    return path, {"x-forwarded-prefix": f"{PREFIX}/"}


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
        ([BELOW], whole_and_by_header),
        ([BELOW], stripped),
        ([BELOW], stripped_in_silence),
        ([], stripped),
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


@pytest.mark.parametrize("path", ["/sessions?agent=&service=shop", "/?service=shop&agent=helper"])
async def test_where_a_page_leads_on_its_own_is_below_the_prefix(
    new_stand: NewStand, path: str
) -> None:
    stand = new_stand(BELOW)
    answer = await stand.get(PREFIX + path)

    assert answer.status_code in (303, 307)
    assert answer.headers["location"].startswith(f"{PREFIX}/")


async def test_the_prefix_alone_leads_to_the_page(new_stand: NewStand) -> None:
    stand = new_stand(BELOW)
    answer = await stand.get(f"{PREFIX}?service=shop", **{"x-forwarded-prefix": "/outer"})

    assert answer.status_code == 307
    assert answer.headers["location"] == f"/outer{PREFIX}/?service=shop"


@pytest.mark.parametrize("path", ["/healthz", "/metrics"])
async def test_probes_and_metrics_answer_at_the_root_and_below(
    new_stand: NewStand, path: str
) -> None:
    stand = new_stand(BELOW)
    found = [
        (await stand.get(each)).status_code for each in (path, PREFIX + path, f"{PREFIX}x{path}")
    ]

    assert found == [200, 200, 404]


async def test_a_path_below_the_prefix_needs_a_token_as_any_other(new_stand: NewStand) -> None:
    stand = new_stand(BELOW, "admin.bearer_tokens=[secret]")
    answer: httpx.Response = await stand.get(f"{PREFIX}/api/v1/agents")

    assert answer.status_code == 401


@for_each(
    "header",
    [
        "//evil.example",
        "https://evil.example",
        "/a//b",
        '/"><script>',
        "/a b",
        "a",
        "/",
        "/..",
        "/a/./b",
        "/x" * 11,
    ],
)
def test_what_is_no_path_is_no_prefix(header: str) -> None:
    assert forwarded_prefix(header) == ""


def test_the_outermost_proxy_says_the_prefix() -> None:
    assert forwarded_prefix("/outer/, /inner") == "/outer"


@pytest.mark.parametrize("text", ["spanwise", "//spanwise", "/a b", "/a/..", "https://a.example/x"])
def test_a_setting_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"admin\.base_path: expected a path such as /spanwise"):
        load([], {}, [f"admin.base_path={text}"])
