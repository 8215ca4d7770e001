"""The page that puts two sides of an agent next to each other: versions, times, tools, sessions that asked alike."""

import re

import pytest

from collector.records.signal import rfc3339
from evaluators.model import ToolCall
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand

PAGE = "/compare?service=support-bot&agent=planner"
EACH = 10


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    """Ten sessions of 1.4.2, then ten of 1.5.0, whose tool fails; each asks about its own order."""
    made = new_stand()
    for number in range(1, 2 * EACH + 1):
        is_new = number > EACH
        asked = ("Refund the broken lamp, please", "When will the parcel of my order arrive?")
        made.take_session(
            100 * number,
            0.2 if is_new else 0.9,
            agent_version="1.5.0" if is_new else "1.4.2",
            input=asked[number % 2],
            tool_calls=(ToolCall(name="find_order", error="no" if is_new else None),),
        )
    made.time = make.START + 5000
    return made


def table(page: str, name: str) -> list[list[str]]:
    """Its rows, without markup."""
    body = page[page.index(f'id="{name}"') :].split("</table>", maxsplit=1)[0]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [
            " ".join(re.sub(r"<[^>]*>", " ", cell).split())
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row)
        ]
        for row in rows
    ]


async def test_the_newest_version_stands_beside_the_one_before(stand: Stand) -> None:
    page = await stand.text(PAGE)

    head, sessions, *rows = table(page, "scores")
    assert head[:3] == ["Evaluator", "1.4.2", "1.5.0"]
    assert sessions[:3] == ["Sessions", "10", "10"]
    reliability = next(row for row in rows if row[0] == "agent reliability")
    assert re.fullmatch(r"0.90 0.\d\d to 1.00", reliability[1])
    assert re.fullmatch(r"0.20 0.00 to \d.\d\d", reliability[2])
    assert reliability[3] == "0.00"
    assert table(page, "tools")[1:] == [["find_order", "0 of 10 sessions", "10 of 10 sessions"]]
    assert "version <b>1.5.0</b>" not in page  # that the sides differ in it is what was asked for


async def test_sessions_of_both_that_asked_alike_stand_side_by_side_each_kind_once(
    stand: Stand,
) -> None:
    page = await stand.text(PAGE)

    cards = page[page.index("The same kind of question") :].split("</article>")[:-1]
    asked = [re.findall(r'<p class="ask">(.*?)</p>', card)[0] for card in cards]
    scores = [re.findall(r"<b>(\d.\d\d)</b>", card)[0] for card in cards]
    assert len(cards) == 4
    assert asked[0] == asked[1] != asked[2] == asked[3]
    assert scores == ["0.90", "0.20"] * 2


async def test_two_times_of_every_version(stand: Stand) -> None:
    middle = rfc3339(make.START + 100 * EACH + 50)
    times = f"baseline=*&baseline_to={middle}&candidate=*&candidate_from={middle}"

    page = await stand.text(f"{PAGE}&{times}")

    head, sessions, *_ = table(page, "scores")
    assert sessions[:3] == ["Sessions", "10", "10"]
    assert head[1].startswith("every version until 2023-11-14")
    assert head[2].startswith("every version, from 2023-11-14")
    assert 'id="verdict"' not in page


@pytest.mark.parametrize("wrong", ["0001-01-01T00:00%2B23:00", "9999999999999", "nan", "yes<b>"])
async def test_a_time_that_is_none_is_said_and_the_rest_is_shown(stand: Stand, wrong: str) -> None:
    answer = await stand.get(f"{PAGE}&candidate_from={wrong}&baseline_from=30d")

    assert answer.status_code == 200
    assert answer.text.count("is neither a time such as") == 1
    assert "yes<b>" not in answer.text
    assert table(answer.text, "scores")[1][0] == "Sessions"


async def test_a_version_that_never_reported_is_empty_and_an_agent_that_did_not_is_missing(
    stand: Stand,
) -> None:
    page = await stand.text(f"{PAGE}&candidate=9.9")
    missing = await stand.get("/compare?service=support-bot&agent=nobody")

    assert table(page, "scores")[1][:3] == ["Sessions", "10", "0"]
    assert "No question of one side was asked in like words on the other." in page
    assert missing.status_code == 404
    assert (await stand.get("/compare")).status_code == 400


async def test_a_version_beside_itself_is_told_to_choose_another(stand: Stand) -> None:
    page = await stand.text(f"{PAGE}&baseline=1.5.0&candidate=1.5.0")

    assert "Both sides are the same" in page
    assert 'id="verdict"' not in page
