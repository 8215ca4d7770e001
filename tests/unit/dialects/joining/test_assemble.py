"""Service, agent and status of a trace."""

from evaluators.dialects.read import read_trace
from tests.support.conventions import AGENT, CHAT, tool
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of


def test_the_service_is_the_roots_resource() -> None:
    inner = request(SpanSpec(id=2, parent=1, start=0), resource={"service.name": "inner"})
    root = request(
        SpanSpec(id=1, start=1), resource={"service.name": "outer", "service.version": "1.2"}
    )

    trace = read_trace([inner, root], trace_id=TRACE_ID, closed="idle")

    assert (trace.service, trace.agent, trace.agent_version) == ("outer", "outer", "1.2")


def test_a_trace_without_resource_has_an_unknown_service() -> None:
    trace = read_trace([request(SpanSpec(id=1), resource={})], trace_id=TRACE_ID, closed="idle")

    assert trace.service == "unknown_service"


def test_the_agent_is_the_outermost_one_under_a_name_that_stays() -> None:
    name = "Crew_d0606630-517f-4faf-a373-bf7f526fa94c"
    trace = trace_of(
        SpanSpec(id=1, attributes={**AGENT, "gen_ai.agent.name": name}, start=1),
        SpanSpec(
            id=2, parent=1, attributes={**AGENT, "gen_ai.agent.name": "writer 20251122"}, start=0
        ),
    )

    assert (trace.agent, trace.agents) == ("Crew", ("writer", "Crew"))


def test_a_handled_tool_error_leaves_the_trace_as_its_root_says() -> None:
    trace = trace_of(
        SpanSpec(id=1, status=1), SpanSpec(id=2, parent=1, attributes=tool("f"), status=2, start=1)
    )

    assert (trace.status, trace.error) == ("ok", None)


def test_a_model_error_that_ended_the_work_counts_though_the_root_hides_it() -> None:
    trace = trace_of(
        SpanSpec(id=1, status=1),
        SpanSpec(id=2, parent=1, attributes=CHAT, status=2, message="400", start=1),
    )

    assert (trace.status, trace.error) == ("error", "400")
