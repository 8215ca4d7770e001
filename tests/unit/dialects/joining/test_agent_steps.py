"""An agent span that answers without a model call beneath it is a step."""

import json
from collections.abc import Callable
from typing import Any

from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.table import for_each


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


def test_an_agent_around_others_that_says_something_else_takes_its_step_after_them() -> None:
    trace = trace_of(
        agent(1, "Orchestrator", "FINAL ANSWER: 42", parent=0),
        agent(2, "WebSurfer", "It says 42."),
        agent(3, "FileSurfer", "The file says 42."),
        agent(4, "team", "The file says 42."),
        agent(5, "writer", "The file  says 42.", parent=4),
    )

    assert [step.agent for step in trace.steps] == [
        "WebSurfer",
        "FileSurfer",
        "writer",
        "Orchestrator",
    ]
    assert trace.output == "FINAL ANSWER: 42"


def test_an_agent_around_a_model_call_takes_no_step_beside_the_agent_without_one() -> None:
    trace = trace_of(
        agent(1, "team", "All done.", parent=0),
        agent(2, "writer", "Written."),
        chat(3, parent=2),
        agent(4, "critic", "Fine."),
    )

    assert [step.agent for step in trace.steps] == ["critic"]


def test_the_last_step_is_the_answer_where_no_other_span_has_one() -> None:
    asked = SpanSpec(
        id=2,
        parent=1,
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "Orchestrator",
            "gen_ai.input.messages": said("How far is it?").replace("assistant", "user"),
            "gen_ai.output.messages": said("Look it up."),
        },
        start=2,
    )

    trace = trace_of(ROOT, asked, agent(3, "WebSurfer", "42 km."))

    assert (trace.input, trace.output) == ("How far is it?", "42 km.")
    assert "no_content" not in trace.gaps


def test_words_to_another_agent_are_the_agents_own() -> None:
    """AutoGen gives an agent's words the role of the user, because another agent reads them."""
    words = said("Search.").replace("assistant", "user")
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": words}

    trace = trace_of(ROOT, SpanSpec(id=2, parent=1, name="invoke_agent a", attributes=attributes))

    assert [step.output for step in trace.steps] == ["Search."]


def test_a_step_that_never_ended_ends_when_it_began() -> None:
    lost = agent(2, "writer", "Half a")
    unended = SpanSpec(id=2, parent=1, attributes=lost.attributes, start=50, end=1)

    (step,) = trace_of(ROOT, unended).steps

    assert step.end_time_unix_nano == step.start_time_unix_nano


def conventions(text: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": text}


def flattened(text: str) -> dict[str, Any]:
    flat = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": text}
    return {"gen_ai.operation.name": "invoke_agent", **flat}


def openinference(text: str) -> dict[str, Any]:
    return {"openinference.span.kind": "AGENT", "output.value": text}


def openinference_messages(text: str) -> dict[str, Any]:
    message = "llm.output_messages.0.message"
    flat = {f"{message}.role": "assistant", f"{message}.content": text}
    return {"openinference.span.kind": "AGENT", **flat}


def traceloop(text: str) -> dict[str, Any]:
    return {"traceloop.span.kind": "agent", "traceloop.entity.output": json.dumps(text)}


def traceloop_workflow(text: str) -> dict[str, Any]:
    state = {"messages": [{"role": "assistant", "content": text}]}
    return {"traceloop.span.kind": "workflow", "traceloop.entity.output": json.dumps(state)}


def langfuse(text: str) -> dict[str, Any]:
    return {"langfuse.observation.type": "agent", "langfuse.observation.output": text}


def mlflow(text: str) -> dict[str, Any]:
    return {"mlflow.spanType": '"AGENT"', "mlflow.spanOutputs": json.dumps(text)}


def vercel(text: str) -> dict[str, Any]:
    return {"ai.operationId": "ai.generateText", "ai.response.text": text}


def pydantic_ai(text: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "final_result": text}


EVERY = [
    conventions,
    flattened,
    openinference,
    openinference_messages,
    traceloop,
    traceloop_workflow,
    langfuse,
    mlflow,
    vercel,
    pydantic_ai,
]


@for_each("of", EVERY)
def test_an_agents_span_of_any_dialect_is_a_step(of: Callable[[str], dict[str, Any]]) -> None:
    trace = trace_of(
        ROOT,
        SpanSpec(id=2, parent=1, name="planner", attributes=of("Search."), start=2, end=3),
        SpanSpec(id=3, parent=1, name="surfer", attributes=of("Found."), start=4, end=5),
    )

    assert [step.output for step in trace.steps] == ["Search.", "Found."]
    assert (trace.is_turn, trace.output) == (True, "Found.")


def test_a_workflow_that_returns_a_text_is_no_agent() -> None:
    attributes = {"traceloop.span.kind": "workflow", "traceloop.entity.output": '"12 rows"'}

    trace = trace_of(SpanSpec(id=1, name="import.workflow", attributes=attributes))

    assert not trace.is_turn


def test_an_agent_that_says_nothing_takes_no_step() -> None:
    trace = trace_of(ROOT, agent(2, "writer", None), agent(3, "critic", ""))

    assert trace.steps == ()
    assert not trace.is_turn
