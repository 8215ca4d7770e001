"""`create_agent(name=...)` of LangChain names the agent, whatever instrumentation recorded it.

The spans are those that openinference 0.1.80, langfuse 5.0.4, langsmith 0.15.0, mlflow 3.17.2 and OpenLLMetry 0.62.4
export of langchain 1.4.7, without their content.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.support.conventions import CHAT
from tests.support.dialect_spans import NAME, SpanSpec, changed, trace_of, under
from tests.support.table import for_each

Run = dict[str, str]
"""LangChain's metadata of a run."""


def openinference(kind: str, metadata: Run) -> dict[str, Any]:
    return {"openinference.span.kind": kind.upper(), "metadata": json.dumps(metadata)}


def mlflow(kind: str, metadata: Run) -> dict[str, Any]:
    name = "CHAT_MODEL" if kind == "llm" else kind.upper()
    return {"mlflow.spanType": json.dumps(name), "metadata": json.dumps(metadata)}


def langfuse(kind: str, metadata: Run) -> dict[str, Any]:
    root = {"langfuse.trace.metadata.lc_agent_name": '"concierge"'}
    own = {key: json.dumps(value) for key, value in metadata.items()}
    name = "generation" if kind == "llm" else kind
    of_run = under("langfuse.observation.metadata.", **own)
    return {"langfuse.observation.type": name, **root, **of_run}


def langsmith(kind: str, metadata: Run) -> dict[str, Any]:
    return {"langsmith.span.kind": kind, **under("langsmith.metadata.", **metadata)}


def traceloop(kind: str, metadata: Run) -> dict[str, Any]:
    own = under("traceloop.association.properties.", **metadata)
    name = "task" if kind in {"chain", "llm"} else kind
    return {"traceloop.span.kind": name, **own, **(CHAT if kind == "llm" else {})}


Dialect = Callable[[str, Run], dict[str, Any]]
EVERY = for_each("of", [openinference, mlflow, langfuse, langsmith, traceloop])
SCOPES: dict[Dialect, str] = {openinference: "openinference.instrumentation.langchain"}
GRAPH: Run = {"ls_integration": "langgraph"}


def made(of: Dialect, kind: str, id_: int, parent: int, name: str, metadata: Run) -> SpanSpec:
    place: dict[str, Any] = {"id": id_, "parent": parent, "start": id_, "end": 99 - id_}
    scope = SCOPES.get(of, "")
    return SpanSpec(name=name, attributes=of(kind, metadata), scope=scope, **place)


def agent(of: Dialect, name: str, *, first: int = 1, parent: int = 0, run: str = "") -> list[Any]:
    """An agent's run, and a model call within it; nested agents run in a node of the graph around."""
    around = {"langgraph_node": name} if parent else {}
    its = {"lc_agent_name": name}
    return [
        made(of, "chain", first, parent, run or name, {**around, **its}),
        made(of, "chain", first + 1, first, "model", {"langgraph_node": "model", **its}),
        made(of, "llm", first + 2, first + 1, "Chat", {"langgraph_node": "model", **its}),
    ]


@EVERY
def test_the_name_given_to_an_agent_is_the_traces_agent(of: Dialect) -> None:
    trace = trace_of(*agent(of, "support_bot"))
    renamed = trace_of(*agent(of, "support_bot", run="nightly run"))
    without_its_run = trace_of(*agent(of, "support_bot")[1:])

    assert (trace.agent, trace.agents) == ("support_bot", ("support_bot",))
    assert [call.agent for call in trace.model_calls] == ["support_bot"]
    assert renamed.agent == without_its_run.agent == "support_bot"


def test_a_span_around_an_agent_under_its_runs_name_is_no_agent() -> None:
    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "nightly run"}
    inner = made(traceloop, "workflow", 2, 1, "nightly run.workflow", {"lc_agent_name": "bot"})

    around = {NAME: "invoke_agent nightly run", **run}
    trace = trace_of(around, {NAME: inner.name, **inner.attributes, **run})

    assert (trace.agent, trace.agents) == ("bot", ("bot",))


@EVERY
def test_agents_in_a_graph_without_a_name_are_the_traces_agents(of: Dialect) -> None:
    graph = made(of, "chain", 1, 0, "LangGraph", GRAPH)
    first, second = (
        agent(of, name, first=at, parent=1) for name, at in (("researcher", 2), ("writer", 5))
    )

    trace = trace_of(graph, *first, *second)

    assert (trace.agent, trace.agents) == ("researcher", ("researcher", "writer"))
    assert [call.agent for call in trace.model_calls] == ["researcher", "writer"]


@for_each("of", [openinference, mlflow, langfuse, langsmith])
def test_a_graph_of_nodes_that_are_no_agents_gives_its_name(of: Dialect) -> None:
    node = {"langgraph_node": "planner"}

    trace = trace_of(
        made(of, "chain", 1, 0, "plan_execute", GRAPH),
        made(of, "chain", 2, 1, "planner", node),
        made(of, "llm", 3, 2, "Chat", node),
    )

    assert trace.agent == "plan_execute"


@EVERY
def test_default_names_are_no_agents_names(of: Dialect) -> None:
    node = {"langgraph_node": "agent"}

    trace = trace_of(
        made(of, "chain", 1, 0, "LangGraph", GRAPH),
        made(of, "agent", 2, 1, "agent", node),
        made(of, "llm", 3, 2, "Chat", node),
    )

    assert (trace.agent, trace.agents) == ("shop", ())


def test_a_tool_with_agent_in_its_name_is_a_tool() -> None:
    """OpenInference calls every run of LangChain an agent whose name has "agent" in it."""
    called = made(openinference, "agent", 10, 2, "ask_weather_agent", {"langgraph_node": "tools"})
    tool = changed(called, tool__name="ask_weather_agent", output__value="Sunny.")

    trace = trace_of(*agent(openinference, "concierge"), tool)

    found = [(call.name, call.result) for call in trace.tool_calls]
    assert found == [("ask_weather_agent", "Sunny.")]
    assert trace.agents == ("concierge",)
