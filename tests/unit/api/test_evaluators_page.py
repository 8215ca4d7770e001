"""The page of the evaluators: which there are, whether they run, and what the judge has spent."""

from typing import Any

import pytest

from collector.api.about import About
from collector.api.page.service_pages import catalogue_view, judge_view
from collector.config.load import load
from collector.doctor.about import about
from collector.judging.families import JudgingFamilies
from collector.records.moved import EvaluatorScores
from evaluators.declare import Spec
from evaluators.plan import make_plan
from evaluators.registry import Registry
from tests.support.api_stand import NewStand

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
    rows = known().catalogue()

    assert {(row["name"], row["method"]) for row in rows} == {(s.name, s.method) for s in OURS}
    assert [row["name"] for row in rows if not row["source"]] == []
    assert {row["runs"] for row in rows} == {True, False}
    off = [row for row in rows if not row["runs"]]
    assert [row["name"] for row in off if not row["setting"]] == []
    judged = next(row for row in off if row["name"] == "task_completion")
    assert (judged["off"], judged["setting"][:11]) == ("no_judge", "judge.model")


def test_with_a_judge_its_siblings_stand_in_until_the_verdict() -> None:
    rows = known("judge.model=gpt-4o-mini").catalogue()

    stand_ins = {row["name"] for row in rows if row["is_stand_in"]}
    assert stand_ins >= {"tool_correctness", "confidence", "step_efficiency"}
    assert {row["method"] for row in rows if row["is_stand_in"]} == {"deterministic"}


def test_an_evaluator_is_listed_once_with_its_methods_and_scores() -> None:
    rows = catalogue_rows(
        {"confidence": EvaluatorScores(0.5, 1, 1, 1)}, {"confidence": EvaluatorScores(2, 2, 2, 0)}
    )

    names = [row["name"] for row in rows]
    assert len(names) == len(set(names)) < sum(len(row["methods"]) for row in rows)
    scored = next(row for row in rows if row["name"] == "confidence")
    assert (scored["mean"], scored["failing"], scored["sessions"]) == (0.75, 1 / 3, 2)
    assert next(row for row in rows if row["name"] == "faithfulness")["mean"] is None


def test_a_row_says_first_what_the_score_is_and_folds_the_rest() -> None:
    (confidence,) = (r["methods"][0] for r in catalogue_rows() if r["name"] == "confidence")

    assert "\n" not in confidence["says"]
    assert confidence["rest"].startswith("Cost each")


@pytest.mark.parametrize(
    ("limit", "remaining", "used", "share"),
    [(5.0, 1.25, 3.75, 0.75), (5.0, 0.0, 5.0, 1.0), (None, None, None, None)],
)
def test_what_of_the_budget_is_used(
    limit: float | None, remaining: float | None, used: float | None, share: float | None
) -> None:
    nothing: dict[str, float] = {}
    judge: dict[str, Any] = {"limit": limit, "remaining": remaining, "requests": nothing}
    judge |= {"tokens": nothing, "usd": nothing}

    view = judge_view(load([], {}, ["judge.model=m"]), judge)

    assert (view["used"], view["used_share"]) == (used, share)


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
    judging.show_budget("day", lambda: 1.25, lambda: 5.0)
    judging.requests.labels("gpt-4o-mini", "ok").inc(1_200)
    judging.requests.labels("gpt-4o-mini", "timeout").inc(2)
    judging.tokens.labels("gpt-4o-mini", "input").inc(34_000)
    judging.cost.labels("gpt-4o-mini").inc(3.75)

    page = await stand.text("/evaluators")

    for said in ("$3.75 of $5.00", "1,200 ok", "2 timeout", "34,000 input", "PandaProbe"):
        assert said in page
