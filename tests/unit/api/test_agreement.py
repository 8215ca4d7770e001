"""Evaluators beside what people said: the endpoint, the gauges, the page, and a judge that is no better than chance."""

import asyncio
from typing import Any

import pytest

from collector.api.about import About
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.given import Given
from collector.records.signal import Signal
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.eventually import eventually

RULES = FeedbackRules()
CATALOGUE: list[dict[str, Any]] = [
    {"name": name, "scope": "trace", "method": method, "version": "1", "runs": True}
    | {"source": "", "doc": "Says how it was.", "threshold": 0.5, "options": {}}
    | {"is_stand_in": False, "off": None, "setting": None, "switched_off": False}
    for name, method in (("coherence", "llm_judge"), ("step_efficiency", "deterministic"))
]


def about_trace(number: int, value: bool, name: str = "thumb", **fields: Any) -> Feedback:
    given = Given(name=name, trace_id=f"{number:032x}", value=value, **fields)
    return RULES.feedback(given, now=make.START)


def judged(number: int, score: float, **changes: Any) -> Signal:
    """What the judge says of a trace of `stand`."""
    of = make.trace(number, session_id=f"s-{number}", agent_version=f"1.{number % 2}")
    given: dict[str, Any] = {"score": score, "success": score > 0.5, "method": "llm_judge"}
    return make.signal(of, "coherence", **given, **changes)


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    """40 traces in sessions of their own, every other one liked.

    `step_efficiency` says what people say but for trace 0; `coherence` is a judge that likes every fourth pair.
    """
    made = new_stand(about=About(catalogue=lambda: CATALOGUE))
    for number in range(40):
        liked = number % 2 == 0
        score = 0.9 if liked and number else 0.1
        of = made.take_session(number, score, agent_version=f"1.{number % 2}")
        made.take_signals(
            make.signal(of, "step_efficiency", score=score, success=score > 0.5),
            judged(number, 0.9 if number % 4 > 1 else 0.2),
        )
        made.take_feedback(about_trace(number, liked))
    made.match()
    return made


async def asked(stand: Stand, query: str = "") -> dict[str, Any]:
    return await stand.json(f"agreement{query}")


async def test_every_evaluator_stands_beside_what_people_said(stand: Stand) -> None:
    found = {each["evaluator"]: each for each in (await asked(stand))["agreement"]}

    assert {"step_efficiency", "coherence", "agent_reliability"} <= found.keys()
    good, judge = found["step_efficiency"], found["coherence"]
    assert {"service": "support-bot", "agent": "planner", "name": "thumb"}.items() <= good.items()
    assert (good["samples"], good["liked"]) == (40, 20)
    assert good["rank"] == pytest.approx(1 - 0.5 / 20)
    assert good["kappa"] == pytest.approx(0.95)
    assert (judge["rank"], judge["kappa"]) == (0.5, 0.0)
    assert found["agent_reliability"]["samples"] == 40, (
        "what is said of a trace counts for its session"
    )


async def test_the_pairs_that_differ_come_worst_first(stand: Stand) -> None:
    found = await asked(stand, "?evaluator=step_efficiency")

    assert {each["evaluator"] for each in found["agreement"]} == {"step_efficiency"}
    (differing,) = found["items"]
    assert (differing["trace_id"], differing["score"], differing["said"]) == (
        f"{0:032x}",
        0.1,
        "positive",
    )
    both = (await asked(stand, "?limit=500"))["items"]
    apart = [abs(each["score"] - (each["said"] == "positive")) for each in both]
    assert apart == sorted(apart, reverse=True)
    assert (await asked(stand, "?agent=other"))["agreement"] == []
    assert (await stand.get("/api/v1/agreement?evaluater=x")).status_code == 422


async def test_a_revised_score_and_a_changed_mind_count_as_they_are_now(stand: Stand) -> None:
    of = make.trace(0, session_id="s-0", agent_version="1.0")
    stand.take_signals(make.signal(of, "step_efficiency", score=0.9, success=True, revision=1))
    assert (await asked(stand, "?evaluator=step_efficiency"))["items"] == []

    stand.take_feedback(about_trace(0, False))
    (differing,) = (await asked(stand, "?evaluator=step_efficiency"))["items"]
    assert (differing["said"], differing["score"]) == ("negative", 0.9)


async def test_only_people_count_and_negative_wins(stand: Stand) -> None:
    stand.take_feedback(
        about_trace(2, False, kind="llm"),
        about_trace(4, True, source="a"),
        about_trace(4, False, source="b"),
    )

    items = (await asked(stand, "?evaluator=step_efficiency"))["items"]

    assert {each["trace_id"] for each in items} == {f"{0:032x}", f"{4:032x}"}


async def looked(stand: Stand) -> None:
    """The gauges are set once."""
    agreements, stopping = stand.api._agreements, asyncio.Event()
    running = asyncio.create_task(agreements.run(stopping))
    await eventually(lambda: bool(agreements.now))
    stopping.set()
    await running


async def test_the_gauges_and_the_pages_say_the_same(stand: Stand) -> None:
    await looked(stand)

    labels = {"service": "support-bot", "agent": "planner", "evaluator": "step_efficiency"}

    def gauge(name: str, **changes: str) -> float:
        wanted = {**labels, "name": "thumb", **changes}
        return stand.counted(f"spanwise_agreement_{name}", **wanted)

    assert gauge("rank_ratio") == pytest.approx(0.975)
    assert gauge("kappa_ratio") == pytest.approx(0.95)
    assert gauge("samples") == 40
    assert gauge("rank_upper_bound_ratio") == 0, "only of judges"
    upper = gauge("rank_upper_bound_ratio", evaluator="coherence")
    assert 0.6 < upper < 0.7, "40 pairs are too few to call it chance"

    evaluators = await stand.text("/evaluators")
    assert "rank 0.97, kappa 0.95, 40 pairs" in evaluators or "rank 0.98, kappa 0.95" in evaluators
    assert "No better than chance" not in evaluators
    page = await stand.text("/agreement")
    assert f'/trace?id={0:032x}"' in page


async def test_a_judge_that_contradicts_people_is_no_better_than_chance(stand: Stand) -> None:
    for number in range(40):
        stand.take_signals(judged(number, 0.9 if number % 2 else 0.2, revision=1))

    await looked(stand)

    (judge,) = (await asked(stand, "?evaluator=coherence"))["agreement"]
    assert (judge["rank"], judge["no_better_than_chance"]) == (0.0, True)
    assert "No better than chance" in await stand.text("/evaluators")
    assert "no better than chance" in await stand.text("/agreement?evaluator=coherence")


async def test_a_page_without_anything_says_how_to_begin(new_stand: NewStand) -> None:
    stand = new_stand()

    assert "POST /v1/feedback" in await stand.text("/agreement")


async def test_the_page_lists_who_people_agree_with_least_and_folds_the_rest(stand: Stand) -> None:
    page = await stand.text("/agreement")

    shown, folded = page.split('<details class="more" id="others">')
    assert "evaluator=coherence" in shown
    assert "evaluator=step_efficiency" not in shown
    others, differ = folded.split("Where they differ")
    assert "evaluator=step_efficiency" in others
    first = differ.split("<h3>")[1]
    assert "coherence" in first
    assert first.split("<details")[0].count("<tr>") == 1 + 5, "five pairs before the fold"
