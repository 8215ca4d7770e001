"""A judge that fails, lies or babbles: exactly one outcome each, never a number, a bounded number of calls."""

import asyncio
import json
import sys
from typing import Any

import pytest

from evaluators.declare import evaluator
from evaluators.judging.calls import MAX_FAULTS
from evaluators.judging.judge import Calls
from evaluators.judging.prompt import JudgeError, Prompt
from evaluators.model import Score, Trace
from evaluators.plan import Settings
from evaluators.providers.scripted import ScriptedJudge, fitting, fitting_answer
from evaluators.resources import Block, Question
from tests.support.evaluating import a_call, a_trace, error_type, plan_of
from tests.support.judging import (
    COGITATOR,
    PANDAPROBE,
    always,
    answering,
    by_name,
    failed,
    judge,
    judged,
)
from tests.support.table import for_each

TRACE = a_trace(tool_calls=(a_call("search", {"q": "Paris"}),))
EVERY = (*PANDAPROBE, *COGITATOR)

GARBAGE = [
    *("", "I would say 0.9 out of 1.", "0.9", "null", "[]", "{}", "{" * 10_000, '{"score": 0.9}'),
    '{"task_completion": {"verdict": 0.9',
    '{"extraction": 0.9, "task_completion": 0.9, "confidence": 0.9}',
    '{"extraction": {"task": 1}, "confidence": {"confidence": NaN}}',
    '{"confidence": {"confidence": 0.9}} {"confidence": {"confidence": 0.1}}',
    "\x00\ufffd\ud800",
    'Sure: {"confidence": {"confidence": 0.9, "reason": "\\ud800"}}',
]


@for_each("calls", ["shared", "separate"])
@for_each("text", GARBAGE)
async def test_garbage_is_never_a_number(text: str, calls: Calls) -> None:
    asked = always(text)

    verdict = await judge(TRACE, asked, judged(*EVERY), calls=calls)

    assert tuple(by_name(verdict)) == tuple(each.spec.name for each in judged(*EVERY))
    assert len(verdict.outcomes) == len(EVERY)
    assert {error_type(outcome) for outcome in verdict.outcomes} == {"parse_error"}
    assert len(asked.asked) <= 4  # with three attempts each: at most 12 requests


@for_each("calls", ["shared", "separate"])
@for_each(
    ("error", "kind"),
    [
        *((JudgeError(type=each, message=""), each) for each in ("timeout", "overload")),
        *((ValueError("a bug"), "exception"), (RecursionError(), "exception")),
    ],
)
async def test_a_judge_that_is_down_is_asked_once(
    error: Exception, kind: str, calls: Calls
) -> None:
    asked = always(error)

    verdict = await judge(TRACE, asked, judged(*EVERY), calls=calls)

    assert len(asked.asked) == 1
    assert len(verdict.outcomes) == len(EVERY)
    assert {(error_type(outcome), outcome.judge) for outcome in verdict.outcomes} == {(kind, None)}


@for_each("asked_before", [0, 1])
async def test_a_spent_budget_skips_what_remains(asked_before: int) -> None:
    def script(prompt: Prompt) -> str | Exception:
        if asked_before and prompt.name == "extraction":
            return fitting_answer(prompt)
        return JudgeError(type="budget", message="spent")

    asked = ScriptedJudge(script)
    verdict = await judge(TRACE, asked, judged(*EVERY, confidence=Settings(model="big")))

    assert len(asked.asked) == 1 + asked_before
    assert {(o.state, o.reason, o.error) for o in verdict.outcomes} == {("skipped", "budget", None)}


async def test_a_failing_extraction_takes_only_those_that_need_it() -> None:
    asked = answering(lambda stage, it: "nonsense" if stage.startswith("extraction") else it)

    verdict = await judge(TRACE, asked)

    needing = {"plan_adherence", "plan_quality", "step_efficiency", "task_completion"}
    assert failed(verdict) == needing
    assert by_name(verdict)["confidence"].score == 0.5
    assert len(asked.asked) == 3


BAD: list[Any] = [
    *(None, 0.9, {"score": 0.9}, {"confidence": 0.9, "reason": 7}),
    *({"confidence": each} for each in (None, True, "high", -0.01, 1e400, [0.9])),
]


@for_each("bad", BAD)
async def test_a_bad_block_fails_alone_after_one_more_question(bad: Any) -> None:
    asked = answering(lambda _, it: {**it, **({"confidence": bad} if "confidence" in it else {})})

    assert failed(await judge(TRACE, asked)) == {"confidence"}
    assert [set(prompt.schema["required"]) for prompt, _ in asked.asked][2:] == [{"confidence"}]


async def test_missing_blocks_are_asked_for_once_more_in_one_call() -> None:
    given = ("confidence", "tool_correctness")
    shared = answering(
        lambda stage, it: {key: it[key] for key in given} if stage == "judging" else it
    )
    separate = answering(lambda stage, it: it if stage in {"extraction", "judging_again"} else {})

    verdict = await judge(TRACE, shared)
    apart = await judge(TRACE, separate, judged(*given), calls="separate")

    assert {outcome.state for outcome in (*verdict.outcomes, *apart.outcomes)} == {"scored"}
    assert [prompt.name for prompt, _ in shared.asked][2:] == ["judging_again"]
    assert len(shared.asked[2][0].schema["properties"]) == len(PANDAPROBE) - 2
    assert shared.asked[2][0].digest != shared.asked[1][0].digest
    assert len(separate.asked) == 3


async def test_an_answer_stays_when_asking_again_fails() -> None:
    def script(prompt: Prompt) -> str | Exception:
        if prompt.name == "judging_again":
            return JudgeError(type="timeout", message="30 s")
        answer = fitting(prompt.schema)
        answer.pop("confidence", None)
        return json.dumps(answer)

    outcomes = by_name(await judge(TRACE, ScriptedJudge(script)))

    assert outcomes["tool_correctness"].score == 0.5
    assert error_type(outcomes["confidence"]) == "parse_error"


async def test_a_wrong_number_of_verdicts_is_asked_for_again() -> None:
    def one_too_many(stage: str, answer: dict[str, Any]) -> Any:
        if stage == "judging":
            answer["argument_correctness"]["verdicts"] *= 2
        return answer

    asked = answering(one_too_many)

    assert failed(await judge(TRACE, asked)) == set()
    assert len(asked.asked) == 3


async def test_one_models_failure_is_not_anothers() -> None:
    class Partly(ScriptedJudge):
        async def __call__(self, prompt: Prompt, *, model: str | None) -> Any:
            if model == "big":
                raise JudgeError(type="provider_error", message="no such model")
            return await super().__call__(prompt, model=model)

    due = judged(*PANDAPROBE, confidence=Settings(model="big"))

    assert failed(await judge(TRACE, Partly(fitting_answer), due)) == {"confidence"}


async def test_many_own_models_that_all_fail_are_bounded() -> None:
    due = judged(*EVERY, **{name: Settings(model=f"m-{name}") for name in EVERY})
    asked = always(JudgeError(type="provider_error", message="down"))

    verdict = await judge(TRACE, asked, due)

    assert len(asked.asked) == MAX_FAULTS == 4
    assert {outcome.state for outcome in verdict.outcomes} == {"failed"}


class Exits(Block, frozen=True, kw_only=True):
    """The score from 0 to 1."""

    score: float

    @classmethod
    def question(cls, subject: Any, options: Any) -> Question:
        if options["where"] == "question":
            sys.exit(3)
        return super().question(subject, options)

    def check(self, subject: Any, options: Any) -> None:
        if options["where"] == "check":
            sys.exit(3)


@for_each("where", ["question", "check", "function"])
async def test_a_third_party_that_exits_fails_alone(where: str) -> None:
    @evaluator(version="1", name="exits")
    def exits(trace: Trace, *, block: Exits, where: str = where) -> Score:
        return Score(value=block.score) if where != "function" else sys.exit(3)

    due = (*judged("confidence"), *plan_of(exits, judge=True).judged)
    verdict = by_name(await judge(TRACE, answering(), due))

    assert error_type(verdict["exits"]) in {"exception", "parse_error"}
    assert verdict["confidence"].state == "scored"


async def test_cancelling_passes_through() -> None:
    class Endless(ScriptedJudge):
        async def __call__(self, prompt: Prompt, *, model: str | None) -> Any:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await judge(TRACE, Endless(fitting_answer))
