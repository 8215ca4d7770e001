"""PandaProbe's judged metrics: the judge's answers given, what we make of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from evaluators.judging.answers import AnswerError, read_block
from evaluators.model import Outcome, ToolCall, ToolDefinition, Trace
from evaluators.resources import Block, Extraction, UnitInterval
from evaluators.run import Configured, Settings, make_plan, score_judged
from evaluators.trace.argument_correctness import Arguments
from tests.golden.checks.compare import close
from tests.support.evaluating import OURS, a_trace

EXTRACTING = {"extract_task", "extract_task_and_outcome", "extract_plan", "extract_tool_usage"}


class Scored(Block, frozen=True, kw_only=True):
    """What the vectors' answers look like."""

    score: UnitInterval
    reason: str | None = None


def response_parsing(given: Any, expected: Any, quirk: str | None) -> None:
    block = None
    with suppress(AnswerError):
        block = read_block(given["raw"], Scored)

    if block is None and (quirk or re.search(r'"score"\s*:\s*(?:true|false)', given["raw"])):
        return  # true is no number here
    if expected["ok"]:
        assert block is not None
        assert (block.score, block.reason) == (expected["score"], expected["reason"])
    elif "{" not in given["raw"] or "{'" in given["raw"]:
        assert block is None  # more may be accepted, but not from nothing


def judge_metrics(given: Any, expected: Any, quirk: str | None) -> None:
    configured = _configured(given["metric"], given["threshold"])
    facts, verdict = _stages(given["judge_answers"])
    extraction = Extraction(
        task=facts.get("task", ""),
        outcome=facts.get("outcome", ""),
        plan=tuple(facts.get("plan", ())),
    )
    try:
        answers = {
            name: extraction if kind is Extraction else _answer(verdict, kind, facts)
            for name, kind in configured.spec.resources.items()
        }
    except AnswerError:
        assert expected.get("error") or quirk == "bool_accepted_as_1"
        return

    outcome = score_judged(configured, _trace(facts), answers)

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
    block = msgspec.convert({"verdicts": given["verdicts"]}, Arguments)

    outcome = score_judged(configured, trace, {"arguments": block})

    if quirk is not None:
        # Calls that nobody judged are never scored.
        assert outcome.state == "failed"
        return
    _same(outcome, expected)
    reasons = expected["incorrect_reasons_shown_to_reason_stage"]
    assert all(reason in (outcome.explanation or "") for reason in reasons)
    if calls:
        score: Any = configured.spec.function(trace, arguments=block)
        close(score.value, expected["score"], tolerance=1e-12)


def _answer(verdict: Any, kind: type[Block], facts: Mapping[str, Any]) -> Block:
    if facts.get("plan") == []:
        verdict = {"score": 0.0}  # an empty plan is never judged, so its judge may say anything
    return read_block(json.dumps(verdict), kind)


def _configured(name: str, threshold: float | None) -> Configured:
    plan = make_plan(
        OURS, {name: Settings(threshold=threshold)}, embedder=None, judge=True, only=[name]
    )
    return next(each for each in plan.judged if each.spec.name == name)


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
