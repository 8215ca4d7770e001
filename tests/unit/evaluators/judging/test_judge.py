"""Judged evaluators: how often a judge is asked, what it is asked, what an outcome says of the cost."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.judging.judge import Calls, judge_trace
from evaluators.judging.prompt import Answer, Prompt
from evaluators.model import Outcome, Score, Trace
from evaluators.plan import Settings
from evaluators.providers.scripted import ScriptedJudge, fitting_answer
from evaluators.resources import Judge
from tests.support.evaluating import a_call, a_tool, a_trace, error_type, plan_of
from tests.support.judging import (
    ALL,
    COGITATOR,
    PANDAPROBE,
    SESSION,
    answering,
    by_name,
    judge,
    judge_turns,
    judged,
)
from tests.support.table import for_each

TRACE = a_trace(tool_calls=(a_call("search", {"q": "Paris"}, span_id="c1"),))


@for_each(
    "names,calls,prompts",
    [
        (PANDAPROBE, "shared", ["extraction", "judging"]),
        (PANDAPROBE, "separate", ["extraction", *PANDAPROBE]),
        (("confidence", "tool_correctness"), "shared", ["judging"]),  # none needs the extraction
    ],
)
async def test_what_is_asked(names: tuple[str, ...], calls: Calls, prompts: list[str]) -> None:
    asked = answering()

    verdict = await judge(TRACE, asked, judged(*names), calls=calls)

    assert len(asked.asked) == verdict.calls == len(prompts)
    assert [prompt.name for prompt, _ in asked.asked][:1] == prompts[:1]
    assert tuple(by_name(verdict)) == names
    assert {outcome.state for outcome in verdict.outcomes} == {"scored"}


@pytest.mark.parametrize(
    ("names", "calls"),
    [(PANDAPROBE, 2.0), ((*COGITATOR, *SESSION), 4 / 3), (ALL, 7 / 3)],
    ids=["PandaProbe's traces", "a call a trace and one for the session", "everything"],
)
async def test_how_many_calls_a_trace_of_three_turns_takes(
    names: tuple[str, ...], calls: float
) -> None:
    turns = [replace(TRACE, trace_id=f"{number:032x}") for number in range(3)]
    expected = {each.trace_id: Expectation(output="sunny") for each in turns}
    due, asked = judged(*names), answering()

    verdicts = [
        await judge(turn, asked, due, expectation=Expectation(output="sunny")) for turn in turns
    ]
    session = await judge_turns(turns, asked, due, expectations=expected)

    assert len(asked.asked) / len(turns) == calls
    assert {*by_name(verdicts[0]), *by_name(session)} == set(names)


async def test_an_evaluator_with_a_model_of_its_own_gets_a_call_of_its_own() -> None:
    asked = answering()
    due = judged(*PANDAPROBE, confidence=Settings(model="big"))

    verdict = await judge(TRACE, asked, due)

    assert [model for _, model in asked.asked] == [None, None, "big"]
    use = by_name(verdict)["confidence"].judge
    assert use is not None
    assert (use.model, use.calls) == ("big", 1)


async def test_what_is_no_turn_cannot_be_read_or_has_nothing_to_judge_costs_nothing() -> None:
    asked = answering()

    idle = await judge(a_trace(model_calls=()), asked)
    unread = await judge(replace(TRACE, unread="undecodable"), asked)
    without_calls = await judge(a_trace(), asked, judged("argument_correctness"))

    assert [outcome.reason for outcome in idle.outcomes] == ["not_a_turn"] * len(PANDAPROBE)
    assert list(map(error_type, unread.outcomes)) == ["undecodable"] * len(PANDAPROBE)
    assert (without_calls.outcomes[0].assumed, without_calls.outcomes[0].judge) == (1.0, None)
    assert asked.asked == []


async def test_an_unknown_price_stays_unknown() -> None:
    verdict = await judge(TRACE, ScriptedJudge(fitting_answer, cost_usd=None))

    assert verdict.cost_usd is None
    assert {outcome.judge and outcome.judge.cost_usd for outcome in verdict.outcomes} == {None}


async def test_without_a_plan_the_plan_is_not_judged() -> None:
    def planless(_: str, answer: dict[str, Any]) -> Any:
        answer.get("extraction", {})["plan"] = []
        return answer

    asked = answering(planless)
    due = judged("plan_adherence", "plan_quality", "task_completion")

    outcomes = by_name(await judge(TRACE, asked, due))
    assert outcomes["plan_adherence"].assumed == outcomes["plan_quality"].assumed == 1.0
    assert outcomes["task_completion"].score == 0.5
    assert set(asked.asked[1][0].schema["properties"]) == {"task_completion"}


@pytest.mark.parametrize("calls", ["shared", "separate"])
async def test_shares_sum_to_what_was_paid(calls: Calls) -> None:
    asked = answering()

    verdict = await judge(TRACE, asked, judged(*PANDAPROBE, *COGITATOR), calls=calls)

    uses = [outcome.judge for outcome in verdict.outcomes if outcome.judge is not None]
    assert len(uses) == len(verdict.outcomes)
    assert sum(use.input_tokens for use in uses) == sum(each.tokens for each, _ in asked.asked) > 0
    assert all(use.output_tokens for use in uses)
    assert verdict.cost_usd is not None
    assert math.isclose(sum(use.cost_usd or 0 for use in uses), verdict.cost_usd)
    assert math.isclose(verdict.cost_usd, 0.001 * verdict.calls)
    assert {use.model for use in uses} == {"scripted"}


async def test_cached_means_that_every_call_was() -> None:
    inner = answering()

    async def ask(prompt: Prompt, *, model: str | None) -> Answer:
        return replace(await inner(prompt, model=model), cached=prompt.name == "judging")

    verdict = await judge_trace(judged(), TRACE, ask, calls="shared", max_prompt=24_000)

    cached = {each.evaluator: each.judge and each.judge.cached for each in verdict.outcomes}
    assert cached["confidence"] is True
    assert cached["task_completion"] is False  # its extraction was paid


async def test_an_equal_prompt_has_an_equal_digest_whatever_its_marker() -> None:
    asked = answering()
    for marker in ("a" * 24, "b" * 24):
        await judge_trace(
            judged(), TRACE, asked, calls="shared", max_prompt=24_000, marker=lambda m=marker: m
        )

    (first, _), _, (second, _), _ = asked.asked
    assert first.digest == second.digest
    assert first.user != second.user
    await judge(replace(TRACE, input="another"), asked)
    assert asked.asked[4][0].digest != first.digest


async def test_the_instructions_do_not_depend_on_the_trace() -> None:
    asked = answering()

    await judge(TRACE, asked)
    await judge(replace(TRACE, input="x", tool_calls=(a_call("a", {}), a_call("b", {}))), asked)

    assert asked.asked[1][0].system == asked.asked[3][0].system


async def test_facts_that_contradict_a_verdict_are_named() -> None:
    trace = a_trace(
        tool_calls=(a_call("search", {}, span_id="c1", error="boom"),),
        tools_offered=(a_tool("search", {"type": "object"}),),
    )

    def praise(_: str, answer: dict[str, Any]) -> Any:
        for each in ("tool_correctness", "step_efficiency"):
            if each in answer:
                answer[each]["score"] = 0.9
        return answer

    outcomes = by_name(await judge(trace, answering(praise)))

    assert outcomes["tool_correctness"].contradiction
    assert outcomes["tool_correctness"].evidence == ("m1", "c1")
    assert not outcomes["step_efficiency"].contradiction
    assert not outcomes["confidence"].contradiction  # it said 0.5
    assert outcomes["confidence"].evidence == ("c1",)


async def test_an_expected_output_is_shown_only_to_evaluators_that_read_it() -> None:
    asked = answering()
    expectation = Expectation(output="XYZZY")

    verdict = await judge(TRACE, asked, judged("relevance"), expectation=expectation)
    await judge(TRACE, asked, judged("confidence"), expectation=expectation)

    assert "XYZZY" in asked.asked[0][0].user
    assert "XYZZY" not in asked.asked[1][0].user
    assert verdict.outcomes[0].expectation == expectation.digest


async def test_a_long_trace_is_cut_to_the_prompt_and_marked_as_truncated() -> None:
    asked = answering()
    calls = tuple(a_call(f"t{at}", {"q": "x" * 5000}) for at in range(60))

    verdict = await judge(a_trace(tool_calls=calls), asked, max_prompt=4000)

    assert all(prompt.tokens <= 4000 + len(str(prompt.schema)) // 4 for prompt, _ in asked.asked)
    assert {outcome.truncated for outcome in verdict.outcomes} != {None}
    assert all("t59" in prompt.user for prompt, _ in asked.asked)


async def test_an_answer_in_which_nothing_can_be_used_is_none() -> None:
    """A client keeps no such answer: each prompt reads what its evaluators can use."""
    reads: list[tuple[bool, bool]] = []

    def answer(prompt: Prompt) -> str:
        good = fitting_answer(prompt)
        reads.append((prompt.is_answered_by(good), prompt.is_answered_by(_beyond(good))))
        return good

    await judge(TRACE, ScriptedJudge(answer))

    assert reads == [(True, False)] * 2


def _beyond(answer: str) -> str:
    """The same answer with other numbers and texts than are allowed."""
    return json.dumps({key: {"score": 7.5} for key in json.loads(answer)})


async def test_a_third_party_may_ask_by_itself_a_few_times() -> None:
    @evaluator(version="1", name="curious")
    async def curious(trace: Trace, *, line: Judge, times: int = 2) -> Score:
        for _ in range(times):
            await line.ask("Answer.", trace.input or "")
        return Score(value=1.0, explanation=line.model)

    asked = ScriptedJudge(lambda _: "fine")

    async def outcome(times: int) -> Outcome:
        due = plan_of(curious, Settings(options={"times": times}), judge=True).judged
        return (await judge(TRACE, asked, due)).outcomes[0]

    polite = await outcome(2)
    assert polite.score == 1.0
    assert polite.judge is not None
    assert polite.judge.calls == 2
    assert error_type(await outcome(50)) == "overload"
    assert len(asked.asked) == 2 + 4
