"""Judges from configuration: blocks like the built-in ones, clamped as Cogitator promises."""

from typing import Any

import pytest

from evaluators.errors import SettingsError
from evaluators.expectations import Expectation
from evaluators.judging.rubric_judge import rubric_judge, with_rubric_judges
from evaluators.model import Scope
from evaluators.plan import Configured, make_plan
from tests.support.evaluating import OURS, a_trace
from tests.support.judging import always, answering, by_name, judge, judged
from tests.support.table import for_each

RUBRIC = "Evaluate whether the response keeps a professional tone."


def planned(*, scope: Scope = "trace", alone: bool = True) -> tuple[Configured, ...]:
    spec = rubric_judge("professional_tone", RUBRIC, scope, 0.7)
    only = [spec.name] if alone else None
    registry = with_rubric_judges(OURS, [spec])
    return make_plan(registry, {}, embedder=None, judge=True, only=only).judged


def scoring(value: Any) -> Any:
    def change(_: str, answer: dict[str, Any]) -> Any:
        answer["professional_tone"]["score"] = value
        return answer

    return answering(change)


@for_each(
    "said,score,success",
    [(0.7, 0.7, True), (0.69, 0.69, False), (1.4, 1.0, True), (-3, 0.0, False), ("0.8", 0.8, True)],
)
async def test_the_score_is_clamped(said: Any, score: float, success: bool) -> None:
    (outcome,) = (await judge(a_trace(), scoring(said), planned())).outcomes

    assert (outcome.score, outcome.success, outcome.threshold) == (score, success, 0.7)
    assert outcome.explanation == "because"
    assert outcome.method == "llm_judge"


@for_each("said", [None, True, "good", [0.5], float("nan"), float("inf")])
async def test_a_score_that_is_not_a_number_fails(said: Any) -> None:
    (outcome,) = (await judge(a_trace(), scoring(said), planned())).outcomes

    assert (outcome.state, outcome.score) == ("failed", None)


@for_each("said", ["Score: 0.75", '{"score": 0.75}', "0.75 out of 1, well written"])
async def test_asked_alone_its_answer_needs_no_key_and_with_others_it_does(said: str) -> None:
    asked = always(said)

    (outcome,) = (await judge(a_trace(), asked, planned())).outcomes
    beside = await judge(a_trace(), always(said), judged("faithfulness", "relevance"))

    assert (outcome.state, outcome.score, len(asked.asked)) == ("scored", 0.75, 1)
    assert {outcome.state for outcome in beside.outcomes} == {"failed"}


async def test_it_is_asked_with_the_others_in_one_call() -> None:
    asked, expectation = answering(), Expectation(output="sunny")

    verdict = await judge(a_trace(), asked, planned(alone=False), expectation=expectation)

    assert len(asked.asked) == 2
    assert by_name(verdict)["professional_tone"].score == 0.5
    assert RUBRIC in asked.asked[1][0].system
    assert "expected output: sunny" in asked.asked[1][0].user


def test_the_version_follows_the_rubric_unless_it_is_given() -> None:
    def version(rubric: str, *given: str) -> str:
        return rubric_judge("tone", rubric, "trace", 0.5, *given).version

    assert version(RUBRIC) == version(f" {RUBRIC}\n") != version(RUBRIC + " Strictly.")
    assert version(RUBRIC, "7") == "7"


@for_each(
    "name,rubric,threshold",
    [
        *(("Tone", RUBRIC, 0.5), ("a/b", RUBRIC, 0.5), ("tone", "  ", 0.5), ("tone", RUBRIC, 1.5)),
        *((taken, RUBRIC, 0.5) for taken in ("confidence", "coherence", "latency")),
    ],
)
def test_an_invalid_judge_or_one_whose_name_is_taken_is_named(
    name: str, rubric: str, threshold: float
) -> None:
    before = len(OURS)

    with pytest.raises(SettingsError, match=f"judges.{name}"):
        with_rubric_judges(OURS, [rubric_judge(name, rubric, "trace", threshold)])

    assert len(OURS) == before
