"""Times on the pages are those of who looks, everywhere on a page, and UTC without a word of the browser."""

from datetime import datetime

import pytest

from collector.api.viewer_zone import COOKIE
from tests.support.api_stand import NewStand, filled

UTC_TIME, OSLO_TIME, NEPAL_TIME = (
    "2023-11-14 22:13:21",
    "2023-11-14 23:13:21",
    "2023-11-15 03:58:21",
)
SESSION = "/session?id=s-1"


@pytest.mark.parametrize(
    ("cookie", "time", "footer"),
    [
        ("", UTC_TIME, "Times are UTC"),
        ("Europe/Oslo", OSLO_TIME, "those of Europe/Oslo"),
        ("Europe%2FOslo", OSLO_TIME, "those of Europe/Oslo"),
        ("Asia/Kathmandu", NEPAL_TIME, "those of Asia/Kathmandu"),
        ("Etc/UTC", UTC_TIME, "those of Etc/UTC"),
        ("Middle/Earth", UTC_TIME, "Times are UTC"),
        ("../../etc/passwd", UTC_TIME, "Times are UTC"),
        ("<b>", UTC_TIME, "Times are UTC"),
        ("A" * 4_000, UTC_TIME, "Times are UTC"),
        ("Europe", UTC_TIME, "Times are UTC"),
    ],
)
async def test_a_page_is_in_the_zone_of_its_viewer(
    new_stand: NewStand, cookie: str, time: str, footer: str
) -> None:
    stand = filled(new_stand())

    page = await stand.text(SESSION, cookie=f"{COOKIE}={cookie}")

    assert f'title="{UTC_TIME} UTC">{time}</time>' in page
    assert footer in page


@pytest.mark.parametrize(
    ("age", "words"),
    [(18, "18 s ago"), (150, "2 min ago"), (7300, "2 h ago"), (200_000, "2 d ago"), (-5, None)],
)
async def test_a_moment_has_how_long_ago_it_is_beside_it(
    new_stand: NewStand, age: int, words: str | None
) -> None:
    stand = filled(new_stand())
    stand.time = datetime.fromisoformat(f"{UTC_TIME}+00:00").timestamp() + age

    page = await stand.text(SESSION)

    shown = f'title="{UTC_TIME} UTC">{UTC_TIME}</time>'
    assert (f'{shown} <small class="ago">{words}</small>' in page) == (words is not None)


async def test_charts_and_sentences_are_in_the_same_zone(new_stand: NewStand) -> None:
    stand = filled(new_stand())
    page = "/agent?service=support-bot&agent=planner&range=15m"

    utc = await stand.text(page)
    oslo = await stand.text(page, cookie=f"{COOKIE}=Europe/Oslo")

    assert "22:13" in utc
    assert ">22:1" not in oslo
    assert ">23:1" in oslo


async def test_the_api_and_files_are_utc_whoever_asks(new_stand: NewStand) -> None:
    stand = filled(new_stand())
    cookie = f"{COOKIE}=Europe/Oslo"

    for path in ("/api/v1/sessions", "/api/v1/sessions?format=csv"):
        assert await stand.text(path) == await stand.text(path, cookie=cookie)
