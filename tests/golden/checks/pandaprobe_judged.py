"""PandaProbe's judged metrics: the judge's answers given, what we make of them."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from evaluators.declare import evaluator
from evaluators.judging.prompt import Prompt
from evaluators.model import Outcome, Score, ToolCall, ToolDefinition, Trace
from evaluators.plan import Configured, Settings
from evaluators.providers.scripted import ScriptedJudge
from evaluators.resources import Block, UnitInterval
from evaluators.trace.argument_correctness import Arguments, judged_argument_correctness
from tests.golden.checks.compare import close
from tests.support.evaluating import a_trace, plan_of
from tests.support.judging import judge, judged

EXTRACTING = {"extract_task", "extract_task_and_outcome", "extract_plan", "extract_tool_usage"}


class Scored(Block, frozen=True, kw_only=True):
    """What the vectors' answers look like."""

    score: UnitInterval
    reason: str | None = None


@evaluator(version="1")
def scored(trace: Trace, *, answer: Scored) -> Score:
    """The judge's score as it is."""
    return Score(value=answer.score, explanation=answer.reason, metadata={"score": answer.score})


SCORED = plan_of(scored, judge=True).judged


def response_parsing(given: Any, expected: Any, quirk: str | None) -> None:
    # Every answer of ours stands under its evaluator's name.
    text = re.sub(r"\{[^{}]*\}", lambda found: f'{{"scored": {found.group()}}}', given["raw"])

    outcome = _judge(a_trace(), SCORED, lambda _: text)

    is_scored = outcome.state == "scored"
    if not is_scored and (quirk or re.search(r'"score"\s*:\s*(?:true|false)', given["raw"])):
        return  # true is not a number here
    if expected["ok"]:
        assert is_scored
        assert outcome.metadata["score"] == expected["score"]
        assert outcome.explanation == expected["reason"]
    elif "{" not in given["raw"] or "{'" in given["raw"]:
        assert not is_scored  # more may be accepted, but not from nothing


def judge_metrics(given: Any, expected: Any, quirk: str | None) -> None:
    name = given["metric"]
    facts, verdict = _stages(given["judge_answers"])
    extraction = {"task": "", "outcome": "", "plan": (), **facts}

    def answer(prompt: Prompt) -> str:
        entry = extraction if prompt.name.startswith("extraction") else verdict
        return json.dumps(dict.fromkeys(prompt.schema["properties"], entry))

    outcome = _judge(_trace(facts), _configured(name, given["threshold"]), answer)

    if outcome.state == "failed":
        assert expected.get("error") or quirk == "bool_accepted_as_1"
        return
    assert not expected.get("error")
    _same(outcome, expected)


def argument_correctness(given: Any, expected: Any, quirk: str | None) -> None:
    configured = _configured("argument_correctness", given["threshold"])
    extraction = given["extraction"]
    calls = extraction["tool_calls"]
    trace = _trace(
        {
            "user_input": extraction["user_input"],
            "tools_called": [{"name": c["name"], "parameters": c["parameters"]} for c in calls],
        }
    )
    text = json.dumps({"argument_correctness": {"verdicts": given["verdicts"]}})

    outcome = _judge(trace, configured, lambda _: text)

    if quirk is not None:
        # Calls without a verdict are never scored.
        assert outcome.state == "failed"
        return
    _same(outcome, expected)
    reasons = expected["incorrect_reasons_shown_to_reason_stage"]
    assert all(reason in (outcome.explanation or "") for reason in reasons)
    if calls:
        block = msgspec.convert({"verdicts": given["verdicts"]}, Arguments)
        score = judged_argument_correctness(trace, arguments=block)
        close(score.value, expected["score"], tolerance=1e-12)


def _judge(trace: Trace, due: tuple[Configured, ...], script: Callable[[Prompt], str]) -> Outcome:
    (outcome,) = asyncio.run(judge(trace, ScriptedJudge(script), due)).outcomes
    return outcome


def _configured(name: str, threshold: float | None) -> tuple[Configured, ...]:
    return judged(name, **{name: Settings(threshold=threshold)})


def _stages(answers: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """(what the extraction stages gave together, the judging stage's answer)."""
    facts: dict[str, Any] = {}
    verdict: Any = {}
    for stage, answer in answers.items():
        if stage in EXTRACTING:
            facts |= answer
        else:
            verdict = answer
    return facts, verdict


def _trace(facts: Mapping[str, Any]) -> Trace:
    return a_trace(
        input=facts.get("user_input", "u"),
        tool_calls=tuple(
            ToolCall(name=call["name"], arguments=call["parameters"])
            for call in facts.get("tools_called", [])
        ),
        tools_offered=tuple(
            ToolDefinition(name=tool["name"], description=tool.get("description"))
            for tool in facts.get("available_tools", [])
        ),
    )


def _same(outcome: Outcome, expected: Any) -> None:
    metadata = dict(expected["metadata"])
    if outcome.state == "not_applicable":
        assert outcome.assumed == expected["score"]
        # Nothing was judged, so nothing passed.
        metadata = {k: v for k, v in metadata.items() if k not in {"threshold", "success"}}
    else:
        close(outcome.score, expected["score"], tolerance=0.00005)
        assert outcome.success == metadata["success"]
        if "reason" in expected:
            assert outcome.explanation == expected["reason"]
    close(dict(outcome.metadata), metadata, tolerance=1e-12)
