"""Service, agent and status of a trace."""

from evaluators.dialects.read import read_trace
from tests.support.conventions import AGENT, model, ran
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, trace_of


def test_the_service_is_the_roots_resource() -> None:
    inner = request(SpanSpec(id=2, parent=1, start=0), resource={"service.name": "inner"})
    named = {"service.name": "outer", "service.version": "1.2"}
    root = request(SpanSpec(id=1, start=1), resource=named)
    nameless = request(SpanSpec(id=1), resource={})

    trace = read_trace([inner, root], trace_id=TRACE_ID, closed="idle")
    unknown = read_trace([nameless], trace_id=TRACE_ID, closed="idle")

    assert (trace.service, trace.agent, trace.agent_version) == ("outer", "outer", "1.2")
    assert unknown.service == "unknown_service"


def test_the_agent_is_the_outermost_one_under_a_name_that_stays() -> None:
    name = "Crew_d0606630-517f-4faf-a373-bf7f526fa94c"
    outer, inner = ({**AGENT, "gen_ai.agent.name": each} for each in (name, "writer 20251122"))
    trace = trace_of(
        SpanSpec(id=1, attributes=outer, start=1), SpanSpec(id=2, parent=1, attributes=inner)
    )

    assert (trace.agent, trace.agents) == ("Crew", ("writer", "Crew"))


def test_a_model_error_that_ended_the_work_counts_and_a_handled_tool_error_does_not() -> None:
    for failed, status, error in (
        (ran(2, 1, "f", status=2), "ok", None),
        (model(2, 1, status=2, message="400"), "error", "400"),
    ):
        trace = trace_of(SpanSpec(id=1, status=1), failed)
        assert (trace.status, trace.error) == (status, error)
