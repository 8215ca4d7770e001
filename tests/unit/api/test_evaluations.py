"""Scores of others in the index: before their trace, after, long after, twice, corrected; as signals, once each."""

import asyncio
import csv
import io
import json
from typing import Any

import msgspec
import pytest

from collector.api.evaluation_table import MOST_NAMES, QUIET
from collector.api.feedback_table import MOST_OF_A_SUBJECT, MOST_WAITING
from collector.log.port import FEEDBACK, SIGNALS
from collector.records.external import EvaluationRules
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.sent_feedback import Evaluation, SentFeedback
from collector.records.signal import Signal, rfc3339
from collector.records.signal_batch import signals_in
from tests.support import api_records as make
from tests.support.api_stand import Stand, filled
from tests.support.clocks import eventually

ONE = f"{1:032x}"
DAY = 86_400.0
SCORES = EvaluationRules(taken=frozenset({"coherence"}))


def said(value: float = 0.4, *, now: float = make.START, **fields: Any) -> Feedback:
    about = {} if "session_id" in fields else {"trace_id": ONE}
    given: dict[str, Any] = {"name": "Tone", "value": value, **about, **fields}
    return FeedbackRules().feedback(Evaluation(**given), now=now)


def published(stand: Stand) -> list[dict[str, Any]]:
    """What is due now, as the feed publishes it."""
    index = stand.api._index
    stand.match()
    found: list[dict[str, Any]] = []
    while (due := index.due_scores(SCORES)) is not None:
        found += [{**json.loads(each.ready.json), "first": each.ready.header.first} for each in due]
        index.published(due)
    return found


def names(stand: Stand) -> list[str]:
    """Of what is due now."""
    return [each["evaluator"] for each in published(stand)]


def dropped(stand: Stand, reason: str) -> float:
    return stand.counted("spanwise_external_evaluations_dropped_total", reason=reason)


def test_a_score_has_the_agent_the_session_and_the_version_of_its_trace(
    filled_stand: Stand,
) -> None:
    score = said(version="3", comment="too formal", time=rfc3339(make.START + 5))
    filled_stand.take_feedback(score)
    filled_stand.time += 10

    (found,) = published(filled_stand)

    assert {
        "scope": "trace",
        "service": "support-bot",
        "agent": "planner",
        "agent_version": "1.4.2",
        "trace_id": ONE,
        "span_id": f"{1:015x}1",
        "session_id": "s-1",
        "evaluator": "tone",
        "evaluator_version": "3",
        "method": "external",
        "score": 0.4,
        "explanation": "too formal",
        "final": True,
        "first": True,
    }.items() <= found.items()
    assert published(filled_stand) == [], "once"


def test_before_its_trace_and_up_to_a_week_after(stand: Stand) -> None:
    stand.take_feedback(said(name="early"))
    assert names(stand) == []
    stand.time += 600
    filled(stand)
    assert names(stand) == ["early"]

    for days, name, found in ((6.9, "late", ["late"]), (1, "too late", [])):
        stand.time += days * DAY
        stand.take_feedback(said(name=name))
        assert names(stand) == found


def test_of_a_session_named_or_by_its_trace(filled_stand: Stand) -> None:
    filled_stand.take_feedback(
        said(name="whole", scope="session"), said(session_id="s-2", service="refunds")
    )

    whole, named = published(filled_stand)

    assert (whole["scope"], whole["session_id"], whole["trace_id"]) == ("session", "s-1", None)
    assert whole["traces"] == {"first": ONE, "newest": f"{2:032x}"}
    assert (named["scope"], named["service"], named["agent"]) == ("session", "refunds", "clerk")


def test_a_repeat_is_no_news_and_the_newest_wins(filled_stand: Stand) -> None:
    times = [rfc3339(make.START + each) for each in range(3)]
    filled_stand.time += 60
    filled_stand.take_feedback(said(0.5, time=times[1]))
    (first,) = published(filled_stand)

    filled_stand.take_feedback(
        said(0.5, time=times[1]), said(0.5, time=times[2]), said(0.1, time=times[0])
    )
    assert published(filled_stand) == [], "the same twice, and one that is older"

    filled_stand.take_feedback(said(0.9, time=times[2]))
    (second,) = published(filled_stand)
    assert (first["first"], second["first"]) == (True, False), "it counts once"
    assert second["revision"] > first["revision"]
    assert second["score"] == 0.9


def test_a_time_in_the_future_wins_no_longer_than_now(filled_stand: Stand) -> None:
    revisions: list[int] = []
    for time in ("9999-01-01T00:00:00Z", None):
        filled_stand.take_feedback(said(0.5 if time else 0.7, now=filled_stand.time, time=time))
        revisions += [each["revision"] for each in published(filled_stand)]
        filled_stand.time += 1

    assert len(revisions) == 2
    assert revisions[1] > revisions[0]


def test_a_crash_before_it_is_noted_makes_the_same_signal(filled_stand: Stand) -> None:
    filled_stand.take_feedback(said(), said(name="other"))
    index = filled_stand.api._index
    filled_stand.match(max_age=DAY)
    once, again = (index.due_scores(SCORES) or [] for _ in range(2))
    assert [each.ready for each in once] == [each.ready for each in again]
    assert len(once) == 2


def test_a_flood_for_traces_that_never_come_takes_no_place_of_another_service(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.api.feedback_table.MOST_WAITING", 50)
    assert MOST_WAITING > 50
    stand.take_feedback(said(name="quiet", service="quiet"))
    stand.take_feedback(
        *(said(service="loud", trace_id=f"{number:032x}") for number in range(100, 300))
    )

    assert stand.match(max_age=DAY).scores_given_up == 151
    filled(stand)
    assert names(stand) == ["quiet"]


def test_of_one_trace_a_hundred(filled_stand: Stand) -> None:
    filled_stand.take_feedback(*(said(id=str(number)) for number in range(MOST_OF_A_SUBJECT + 5)))

    found = published(filled_stand)

    assert len(found) == MOST_OF_A_SUBJECT
    assert sum(each["first"] for each in found) == 1, "a trace counts once for each evaluator"
    assert dropped(filled_stand, "subject_full") == 5


def test_ten_thousand_names_leave_the_known_ones(stand: Stand) -> None:
    stand.take_traces(*map(make.trace, range(1, 6)))
    stand.take_feedback(said(name="mine"))
    assert len(published(stand)) == 1
    for number in range(200):
        trace_id = f"{1 + number % 5:032x}"
        stand.take_feedback(said(name=f"n{number}", trace_id=trace_id, service="loud"))
    assert len(published(stand)) == MOST_NAMES - 1
    assert dropped(stand, "max_names") == 201 - MOST_NAMES

    stand.take_feedback(said(name="mine", id="again"))
    assert len(published(stand)) == 1
    stand.time += QUIET / 1e6 + 1
    stand.take_feedback(said(name="a new one", trace_id=f"{2:032x}"))
    assert len(published(stand)) == 1, "it takes the place of one that is quiet"


def test_a_flood_of_names_lets_no_other_service_wait(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole batches of it have no place, and the next one is due all the same."""
    monkeypatch.setattr("collector.api.evaluation_table._AT_ONCE", 8)
    filled(stand)
    stand.take_feedback(*(said(name=f"n{number}") for number in range(MOST_OF_A_SUBJECT)))
    stand.take_feedback(said(session_id="s-2", service="refunds"))
    stand.match()

    first = stand.api._index.due_scores(SCORES)

    assert "refunds" in {each.signal.service for each in first or ()}
    assert len(published(stand)) == MOST_NAMES + 1
    assert stand.api._index.due_scores(SCORES) is None


def test_it_goes_with_its_session(filled_stand: Stand) -> None:
    filled_stand.take_feedback(said(), said(session_id="s-1", service="support-bot"))
    published(filled_stand)
    index = filled_stand.api._index

    with index._changing() as change:
        change.evict_oldest(10)

    with index.reading() as reading:
        left = reading.connection.execute("SELECT count(*) FROM evaluations").fetchone()
    assert left == (0,)


async def test_the_feed_publishes_and_counts_each_once(filled_stand: Stand) -> None:
    stand, first = filled_stand, len(filled_stand.log.written)
    for each in (said(name="Step efficiency"), said(7, name="stars")):
        stand.log.append(FEEDBACK, msgspec.json.encode(each))
    stopping = asyncio.Event()
    feed = asyncio.create_task(stand.api._new_feed().run(stopping))

    def are_counted() -> bool:
        stand.time += 1
        labels = {"service": "support-bot", "agent": "planner"}
        family = "spanwise_external_evaluations_total"
        names = ("x_step_efficiency", "stars")
        return [stand.counted(family, **labels, evaluator=each) for each in names] == [1, 1]

    await eventually(are_counted)
    stopping.set()
    await feed

    records = [each for each in stand.log.written[first:] if each.position.topic == SIGNALS]
    found = [each.header for record in records for each in signals_in(record)]
    assert [(each.evaluator, each.outcome) for each in found] == [
        ("x_step_efficiency", "scored"),
        ("stars", "failed"),
    ]


async def test_the_page_and_the_api_say_where_each_comes_from_and_what_it_lacks(
    filled_stand: Stand,
) -> None:
    scores = said(4, name="Groundedness"), said(0.5, version="2", id="two")
    filled_stand.take_feedback(*scores)
    published(filled_stand)

    grounded, tone = (await filled_stand.json("evaluators"))["external"]
    page = await filled_stand.text("/evaluators")

    assert {
        "evaluator": "groundedness",
        "count": 1,
        "low": 4,
        "high": 4,
        "failed": 1,
        "source": "POST /v1/evaluations",
    }.items() <= grounded.items()
    scale = "{scales: {groundedness: {min: 0, max: 4}}}"
    assert f"evaluations: {scale}" in grounded["missing"][0]
    assert (tone["evaluator"], tone["count"]) == ("tone", 1)
    assert tone["missing"] == ["neither passes nor fails: set evaluations.thresholds.tone"]
    assert "Of others" in page
    assert scale in page


async def test_people_filters_and_lists_see_it_as_a_score_of_ours(stand: Stand) -> None:
    """40 sessions, every other one liked: what `tone` passes people like, but for the first one."""
    for number in range(40):
        liked = number % 2 == 0
        of = make.trace(number, session_id=f"s-{number}")
        stand.take_traces(of)
        passed = liked and number > 0
        tone = said(0.9 if passed else 0.1, trace_id=of.trace_id, label=str(passed))
        thumb = SentFeedback(name="thumb", trace_id=of.trace_id, value=liked)
        stand.take_feedback(tone, FeedbackRules().feedback(thumb, now=make.START))
    signals = [msgspec.convert(each, Signal, strict=False) for each in published(stand)]
    stand.take_signals(*signals)

    (found,) = (await stand.json("agreement?evaluator=tone"))["agreement"]
    assert (found["samples"], found["liked"]) == (40, 20)
    assert found["kappa"] == pytest.approx(0.95)
    failed = "/api/v1/sessions?failed=tone&limit=100"
    named = [each["session_id"] for each in (await stand.get(failed)).json()["items"]]
    assert {*named} == {"s-0", *(f"s-{number}" for number in range(1, 40, 2))}
    rows = csv.DictReader(io.StringIO(await stand.text(f"{failed}&format=csv")))
    assert {row["session_id"] for row in rows} == set(named)
    shown = (await stand.json("sessions/s-1?service=support-bot"))["traces"]
    assert [each["evaluator"] for each in shown[0]["signals"]] == ["tone"]
    listed = await stand.items("signals?evaluator=tone&limit=100")
    assert {each["method"] for each in listed} == {"external"}
    assert len(listed) == 40
