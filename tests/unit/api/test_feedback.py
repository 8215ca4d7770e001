"""Feedback in the index: before its trace, after, long after, twice, changed; and on the pages, with their thumbs."""

import asyncio
from itertools import count
from typing import Any

import pytest

from collector.api.families import ApiFamilies
from collector.api.feed import MOST_NAMES, FeedbackCounts
from collector.api.feedback_table import MOST_OF_A_SUBJECT, WAITS, Matched, Matching
from collector.base.telemetry import OTHER
from collector.log.port import FEEDBACK
from collector.records.feedback import Feedback, FeedbackRules, decode_feedback
from collector.records.sent_feedback import SentFeedback
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand, filled

ONE = f"{1:032x}"
DAY = 86_400.0
_ids = count()


def said(value: float | bool = False, *, now: float = make.START, **fields: Any) -> Feedback:
    """A thumb for trace 1, with an id of its own."""
    about = {} if {"session_id", "task_id"} & fields.keys() else {"trace_id": ONE}
    mine = {"name": "thumb", "value": value, "id": f"said-{next(_ids)}"}
    given: dict[str, Any] = {**mine, **about, **fields}
    return FeedbackRules().feedback(SentFeedback(**given), now=now)


async def shown(stand: Stand, path: str = f"traces/{ONE}") -> tuple[str | None, list[str]]:
    """What people say on the whole, and every comment or name, the latest first."""
    found = await stand.json(path)
    return found["user_outcome"], [
        each.get("comment") or each["name"] for each in found["feedback"]
    ]


def kept(stand: Stand) -> int:
    """How much feedback the index has."""
    with stand.api._index.reading() as reading:
        return reading.connection.execute("SELECT count(*) FROM feedback").fetchone()[0]


async def test_what_is_said_after_a_trace_has_come(filled_stand: Stand) -> None:
    assert await shown(filled_stand) == (None, [])

    filled_stand.time += 60
    filled_stand.take_feedback(said(comment="wrong city"))

    assert filled_stand.match().matched == [
        Matched("support-bot", "planner", "s-1", "thumb", "human", "negative")
    ]
    for path in (f"traces/{ONE}", "sessions/s-1"):
        assert await shown(filled_stand, path) == ("negative", ["wrong city"])
    assert await shown(filled_stand, f"traces/{2:032x}") == (None, [])
    assert filled_stand.match().matched == [], "it counts once"


async def test_what_is_said_before_its_trace_waits_for_it_and_of_a_task_for_one_that_names_it(
    stand: Stand,
) -> None:
    stand.take_feedback(said(comment="early"), said(True, task_id="refund-7", comment="solved"))
    assert stand.match() == Matching([], 0, True)

    stand.time += 600
    stand.take_traces(make.trace(1), make.trace(2, session_id="s-2", task_id="refund-7"))

    assert [each.session_id for each in stand.match().matched] == ["s-1", "s-2"]
    assert await shown(stand) == ("negative", ["early"])
    assert await shown(stand, f"traces/{2:032x}") == ("positive", ["solved"])


async def test_a_week_after_its_trace_it_is_too_late(filled_stand: Stand) -> None:
    for days, matched in ((6, 1), (2, 0)):
        filled_stand.time += days * DAY
        filled_stand.take_feedback(said(comment=f"after {days}"))
        assert len(filled_stand.match().matched) == matched

    filled_stand.time += WAITS + 1
    assert filled_stand.match().given_up == 1
    assert (await shown(filled_stand))[1] == ["after 6"]


def test_what_is_about_nothing_is_given_up_after_an_hour(stand: Stand) -> None:
    stand.take_feedback(said(trace_id="f" * 32), said(session_id="none", service="shop"))

    stand.time += WAITS - 1
    assert stand.match() == Matching([], 0, True)
    stand.time += 2
    assert stand.match() == Matching([], 2, False)


async def test_the_same_id_replaces(filled_stand: Stand) -> None:
    filled_stand.take_feedback(said(True, id="mine", comment="nice"))
    assert len(filled_stand.match().matched) == 1

    filled_stand.take_feedback(said(False, id="mine", comment="on second thought"))

    assert await shown(filled_stand) == ("negative", ["on second thought"])
    assert filled_stand.match().matched == [], "a changed mind counts once"


async def test_negative_if_any_person_says_so_and_only_people_count(filled_stand: Stand) -> None:
    of_session = said(False, session_id="s-1", service="support-bot")
    outcomes: list[str | None] = []
    for each in (said(False, kind="llm"), said(0.5), said(True), of_session):
        filled_stand.take_feedback(each)
        outcomes.append((await shown(filled_stand))[0])

    assert outcomes == [None, "neutral", "positive", "positive"]
    assert (await shown(filled_stand, "sessions/s-1"))[0] == "negative"


async def test_it_goes_with_a_trace_that_moves_to_another_session(filled_stand: Stand) -> None:
    filled_stand.take_feedback(said(comment="mine"))
    filled_stand.match()

    moved = make.trace(1, session_id="s-9")
    filled_stand.take_traces(make.trace_value(moved, revision=1, seen=make.START + 50))

    assert await shown(filled_stand, "sessions/s-9") == ("negative", ["mine"])
    assert await shown(filled_stand, "sessions/s-1") == (None, [])


def test_it_is_forgotten_with_its_session(filled_stand: Stand) -> None:
    filled_stand.take_feedback(said(), said(session_id="s-1", service="support-bot"))
    filled_stand.match()

    with filled_stand.api._index._changing() as change:
        change.evict_oldest(10)

    assert kept(filled_stand) == 0


async def test_of_one_subject_the_newest_are_kept(filled_stand: Stand) -> None:
    for number in range(MOST_OF_A_SUBJECT + 5):
        filled_stand.time += 1
        filled_stand.take_feedback(said(comment=f"word {number}"))

    _, comments = await shown(filled_stand)
    assert (len(comments), comments[0]) == (MOST_OF_A_SUBJECT, f"word {MOST_OF_A_SUBJECT + 4}")
    gone = {"kind": "feedback", "reason": "subject_full"}
    assert filled_stand.counted("spanwise_index_evicted_total", **gone) == 5


def test_of_one_task_too_whether_or_not_it_was_joined(stand: Stand) -> None:
    stand.take_traces(make.trace(1, task_id="refund-7"))
    for _ in range(3):
        stand.take_feedback(*(said(True, task_id="refund-7") for _ in range(60)))
        stand.match()

    assert kept(stand) == MOST_OF_A_SUBJECT


async def test_no_comment_is_shown_where_no_content_is(new_stand: NewStand) -> None:
    stand = filled(new_stand("redaction.content=drop"))
    stand.take_feedback(said(comment="secret"))

    assert await shown(stand) == ("negative", ["thumb"])


def test_what_is_no_feedback_is_named(stand: Stand) -> None:
    stand.log.append(FEEDBACK, b"not json")

    taken = stand.api._index.take_feedback(stand.log.written[-1:])

    assert [position.topic for position, _ in taken.undecodable] == [FEEDBACK]


def test_names_beyond_the_limit_share_one_label(stand: Stand) -> None:
    joined: list[str] = []
    families = ApiFamilies(stand.telemetry)
    counts = FeedbackCounts(stand.telemetry, families, lambda _, each, __: joined.append(each))
    names = [f"name-{n}" for n in range(MOST_NAMES + 3)]
    matched = [Matched("shop", "desk", "s", name, "human", "positive") for name in names]

    counts.matched(Matching(matched, 4, False))

    labels = {"service": "shop", "agent": "desk", "kind": "human", "label": "positive"}
    for name, times in (("name-0", 1), (OTHER, 3)):
        assert stand.counted("spanwise_feedback_total", **labels, name=name) == times
    assert stand.counted("spanwise_feedback_unmatched_total") == 4
    assert len(joined) == MOST_NAMES + 3


# --- the pages ------------------------------------------------------------------------------------------------------


async def test_the_pages_show_what_was_said(filled_stand: Stand) -> None:
    filled_stand.take_feedback(
        said(comment="wrong <b>city</b>"), said(True, name="tone", label="good")
    )

    for page in (f"/trace?id={ONE}", "/session?id=s-1"):
        text = await filled_stand.text(page)
        for words in ("wrong &lt;b&gt;city&lt;/b&gt;", "a person, ", "People say"):
            assert words in text
        assert 'name="thumb" value="down"' in text


async def thumb(stand: Stand, page: str, thumb: str = "down", **headers: str) -> Any:
    """Press it; the index takes what the log has meanwhile, as its reader would."""

    async def index() -> None:
        seen = 0
        while True:
            if new := stand.log.history(FEEDBACK)[seen:]:
                stand.api._index.take_feedback(new)
                seen += len(new)
            await asyncio.sleep(0)

    reader = asyncio.create_task(index())
    try:
        async with stand.client() as client:
            return await client.post(page, data={"thumb": thumb, "comment": "why"}, headers=headers)
    finally:
        reader.cancel()


@pytest.mark.parametrize(
    ("page", "subject"),
    [
        (f"/trace?id={ONE}", ("trace", ONE)),
        ("/session?service=support-bot&id=s-1", ("session", "s-1")),
    ],
)
async def test_a_thumb_is_one_click_and_comes_back_to_its_page(
    filled_stand: Stand, page: str, subject: tuple[str, str]
) -> None:
    answer = await thumb(filled_stand, page)
    shows = await filled_stand.text(page)
    await thumb(filled_stand, page, "up")

    assert (answer.status_code, answer.headers["location"]) == (303, f"{page}#said")
    assert "why" in shows
    first, second = (decode_feedback(each.value) for each in filled_stand.log.history(FEEDBACK))
    assert (first.subject, first.opinion, first.comment) == (subject, "negative", "why")
    assert first.id == second.id, "the second one replaces the first"


@pytest.mark.parametrize(
    ("page", "press", "headers", "status"),
    [
        (f"/trace?id={ONE}", "up", {"sec-fetch-site": "same-origin", "origin": "null"}, 303),
        (f"/trace?id={ONE}", "up", {"sec-fetch-site": "cross-site"}, 403),
        (f"/trace?id={ONE}", "up", {"sec-fetch-site": "same-site"}, 403),
        (f"/trace?id={ONE}", "up", {"origin": "https://evil.example"}, 403),
        (f"/trace?id={ONE}", "up", {"origin": "null"}, 403),
        (f"/trace?id={ONE}", "sideways", {}, 422),
        ("/trace?id=x", "up", {}, 422),
        ("/session?id=s-1", "up", {}, 422),
    ],
)
async def test_what_is_no_thumb_or_comes_from_another_site_is_refused(
    filled_stand: Stand, page: str, press: str, headers: dict[str, str], status: int
) -> None:
    assert (await thumb(filled_stand, page, press, **headers)).status_code == status
    assert len(filled_stand.log.history(FEEDBACK)) == (status == 303)


async def test_a_case_expects_what_a_person_corrected(filled_stand: Stand) -> None:
    correction = said(False, name="correction", label="bad", comment="It rains in Oslo.")
    filled_stand.take_feedback(correction)

    case = await filled_stand.text(f"/trace/case?id={ONE}")

    assert "output: It rains in Oslo." in case
    assert "answer 1" not in case
