"""The page of the evaluators, and evaluators beside what people said."""

import asyncio
from typing import Any

import pytest

from collector.api.about import About
from collector.api.page.service_pages import catalogue_view, judge_view
from collector.config.load import load
from collector.doctor.about import about
from collector.judging.families import JudgingFamilies
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.moved import EvaluatorScores
from collector.records.sent_feedback import SentFeedback
from collector.records.signal import Signal
from evaluators.declare import Spec
from evaluators.plan import make_plan
from evaluators.registry import Registry
from tests.support import api_records as make
from tests.support.api_stand import NewStand, Stand
from tests.support.clocks import eventually

OURS: tuple[Spec, ...] = tuple(Registry.discover([]))


def known(*overrides: str) -> About:
    config = load([], {}, overrides)
    judge = config.judge.model or False
    plan = make_plan(Registry(OURS), {}, embedder="wordllama/x", judge=judge, expectations=False)
    return about(config, OURS, plan)


def catalogue_rows(*scores: dict[str, EvaluatorScores]) -> list[dict[str, Any]]:
    view = catalogue_view(known().catalogue(), (), scores)
    return [row for rows in view["scopes"].values() for row in rows]


def test_the_catalogue_has_every_evaluator_and_says_what_would_make_one_run() -> None:
    rows, judged = (known(*each).catalogue() for each in ((), ("judge.model=gpt-4o-mini",)))
    off = [row for row in rows if not row["runs"]]
    stand_ins = {row["name"]: row["method"] for row in judged if row["is_stand_in"]}

    assert {(row["name"], row["method"]) for row in rows} == {(s.name, s.method) for s in OURS}
    assert all(row["source"] for row in rows)
    assert 0 < len(off) < len(rows)
    assert all(row["setting"] for row in off)
    completion = next(row for row in off if row["name"] == "task_completion")
    assert (completion["off"], completion["setting"][:11]) == ("no_judge", "judge.model")
    assert stand_ins.keys() >= {"tool_correctness", "confidence", "step_efficiency"}
    assert {*stand_ins.values()} == {"deterministic"}, "until the verdict"


def test_an_evaluator_is_listed_once_with_its_methods_and_scores_and_folds_what_is_long() -> None:
    rows = catalogue_rows(
        {"confidence": EvaluatorScores(0.5, 1, 1, 1)}, {"confidence": EvaluatorScores(2, 2, 2, 0)}
    )

    by_name = {row["name"]: row for row in rows}
    assert len(rows) == len(by_name) < sum(len(row["methods"]) for row in rows)
    scored = by_name["confidence"]
    assert (scored["mean"], scored["failing"], scored["sessions"]) == (0.75, 1 / 3, 2)
    assert by_name["faithfulness"]["mean"] is None
    assert "\n" not in scored["methods"][0]["says"]
    assert scored["methods"][0]["rest"].startswith("Cost each")


async def test_the_page_of_the_evaluators_names_one_that_is_switched_off(
    new_stand: NewStand,
) -> None:
    off, plan = {"confidence"}, make_plan(Registry(OURS), {}, embedder=None)
    stand = new_stand(about=about(load([], {}, ()), OURS, plan, lambda: frozenset(off)))
    said = "Switched off for ten minutes after three deaths or time-outs."

    rows = (await stand.text("/evaluators")).split("<tr id=")
    off.clear()

    assert [row[:12] for row in rows if said in row] == ['"confidence"']
    assert said not in await stand.text("/evaluators")


async def test_the_page_of_the_evaluators_shows_spend_and_budget(new_stand: NewStand) -> None:
    setting = "judge.model=gpt-4o-mini"
    stand = new_stand(setting, about=known(setting))
    judging = JudgingFamilies(stand.telemetry)
    judging.requests.labels("gpt-4o-mini", "ok").inc(1_200)
    judging.requests.labels("gpt-4o-mini", "timeout").inc(2)
    judging.tokens.labels("gpt-4o-mini", "input").inc(34_000)
    judging.cost.labels("gpt-4o-mini").inc(3.75)
    endless = await stand.text("/evaluators")
    judging.show_budget("day", lambda: 1.25, lambda: 5.0)

    page = await stand.text("/evaluators")

    assert "$5.00" not in endless
    for said in ("$3.75 of $5.00", "1,200 ok", "2 timeout", "34,000 input", "PandaProbe"):
        assert said in page
    judge: dict[str, Any] = {
        "limit": 5.0,
        "remaining": 0.0,
        "requests": {},
        "tokens": {},
        "usd": {},
    }
    view = judge_view(load([], {}, [setting]), judge)
    assert (view["used"], view["used_share"]) == (5.0, 1.0)


CATALOGUE: list[dict[str, Any]] = [
    {"name": name, "scope": "trace", "method": method, "version": "1", "runs": True}
    | {"source": "", "doc": "Says how it was.", "threshold": 0.5, "options": {}}
    | {"is_stand_in": False, "off": None, "setting": None, "switched_off": False}
    for name, method in (("coherence", "llm_judge"), ("step_efficiency", "deterministic"))
]


def about_trace(number: int, value: bool, **fields: Any) -> Feedback:
    given = SentFeedback(name="thumb", trace_id=f"{number:032x}", value=value, **fields)
    return FeedbackRules().feedback(given, now=make.START)


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


async def test_every_evaluator_is_beside_what_people_said(stand: Stand) -> None:
    found = {each["evaluator"]: each for each in (await asked(stand))["agreement"]}

    good, judge = found["step_efficiency"], found["coherence"]
    labels = {"service": "support-bot", "agent": "planner", "name": "thumb"}
    assert ({**labels, "samples": 40, "liked": 20}).items() <= good.items()
    assert (good["rank"], good["kappa"]) == pytest.approx((1 - 0.5 / 20, 0.95))
    assert (judge["rank"], judge["kappa"]) == (0.5, 0.0)
    assert found["agent_reliability"]["samples"] == 40, "a trace counts for its session"


async def test_the_pairs_that_differ_come_worst_first(stand: Stand) -> None:
    found = await asked(stand, "?evaluator=step_efficiency")

    assert {each["evaluator"] for each in found["agreement"]} == {"step_efficiency"}
    (differing,) = found["items"]
    assert (differing["trace_id"], differing["said"]) == (f"{0:032x}", "positive")
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


async def test_the_page_lists_who_people_agree_with_least_and_folds_the_rest(
    stand: Stand, new_stand: NewStand
) -> None:
    page = await stand.text("/agreement")
    empty = await new_stand().text("/agreement")

    assert "POST /v1/feedback" in empty, "how to begin"

    shown, folded = page.split('<details class="more" id="others">')
    assert "evaluator=coherence" in shown
    assert "evaluator=step_efficiency" not in shown
    others, differ = folded.split("Where they differ")
    assert "evaluator=step_efficiency" in others
    first = differ.split("<h3>")[1]
    assert "coherence" in first
    assert first.split("<details")[0].count("<tr>") == 1 + 5, "five pairs before the fold"
