"""An agent span that answers without a model call beneath it is a step."""

from __future__ import annotations

import json
from typing import Any

from tests.support.dialect_spans import SpanSpec, span_id, trace_of


def said(text: str) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


def agent(id_: int, name: str, text: str | None, *, parent: int = 1, **more: Any) -> SpanSpec:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    if text is not None:
        attributes["gen_ai.output.messages"] = said(text)
    return SpanSpec(id=id_, parent=parent, attributes=attributes, start=id_, end=id_ + 1, **more)


def chat(id_: int, parent: int) -> SpanSpec:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return SpanSpec(id=id_, parent=parent, attributes=attributes, start=id_, end=id_ + 1)


ROOT = SpanSpec(id=1, name="group chat", end=99)


def test_agents_that_answer_take_steps_in_order() -> None:
    trace = trace_of(
        ROOT, agent(3, "WebSurfer", "I found it."), agent(2, "Orchestrator", "Search.")
    )

    assert [(step.agent, step.output) for step in trace.steps] == [
        ("Orchestrator", "Search."),
        ("WebSurfer", "I found it."),
    ]
    assert trace.steps[0].span_id == span_id(2)
    assert trace.is_turn


def test_an_agent_over_its_model_call_takes_no_step_of_its_own() -> None:
    trace = trace_of(ROOT, agent(2, "writer", "Done."), chat(3, parent=2))

    assert trace.steps == ()
    assert len(trace.model_calls) == 1


def test_of_agents_within_each_other_the_inner_one_takes_the_step() -> None:
    trace = trace_of(ROOT, agent(2, "team", "Done."), agent(3, "writer", "Done.", parent=2))

    assert [step.agent for step in trace.steps] == ["writer"]


def test_an_agent_that_says_nothing_takes_no_step() -> None:
    trace = trace_of(ROOT, agent(2, "writer", None), agent(3, "critic", ""))

    assert trace.steps == ()
    assert not trace.is_turn
