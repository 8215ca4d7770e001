"""Which spans are read, by which dialect, and how a trace is printed."""

from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluators.dialects.decoding.key_sets import shape_of
from evaluators.dialects.read import read_trace
from evaluators.dialects.registry import DIALECTS
from evaluators.dialects.show import show
from evaluators.digest import trace_digest
from evaluators.model import Trace
from tests.support.conventions import AGENT, CHAT, asked, says, tool
from tests.support.declared_dialects import declared, forgotten
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, span_id, trace_of, under
from tests.support.openinference import flat, of
from tests.support.table import for_each
from tests.support.weather import dump


def read(*pieces: bytes, trace_id: str = TRACE_ID) -> Trace:
    return read_trace(pieces, trace_id=trace_id, closed="idle")


def test_no_span_of_the_trace_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no span of trace"):
        read(request(SpanSpec(id=1)), trace_id="ff" * 16)


def test_spans_of_other_traces_are_passed_over() -> None:
    other = request(SpanSpec(id=9), trace_id="ff" * 16)

    assert read(other, request(SpanSpec(id=1))).spans == 1


def test_of_a_span_sent_twice_the_first_copy_counts() -> None:
    copies = [request(SpanSpec(id=1, attributes={"session.id": name})) for name in ("one", "two")]

    assert read(*copies).session_id == "one"


def test_a_broken_piece_or_dropped_attributes_mark_the_trace_truncated() -> None:
    trace = read(request(SpanSpec(id=1)), b"\xff\xff")

    assert (trace.spans, trace.truncated, "truncated" in trace.gaps) == (1, True, True)
    assert trace_of(SpanSpec(id=1, dropped=3)).truncated
    assert not trace_of(SpanSpec(id=1)).truncated


def test_the_digest_is_that_of_the_span_ids() -> None:
    trace = trace_of(SpanSpec(id=1), SpanSpec(id=2, parent=1))

    assert trace.digest == trace_digest([span_id(1), span_id(2)])


def test_resources_too_large_to_remember_are_read_as_the_others() -> None:
    """And each request's own: resources are remembered by their bytes."""
    services = ["one", "x" * 100, "one", "two"]

    def service(name: str, padding: int) -> str:
        message = ExportTraceServiceRequest.FromString(request(SpanSpec(id=1)))
        resource = message.resource_spans[0].resource
        for key, value in (("service.name", name), ("padding", "p" * padding)):
            resource.attributes.add(key=key).value.string_value = value
        return read(message.SerializeToString()).service

    assert [service(name, padding) for padding in (1, 10_000) for name in services] == 2 * services


# --- the tuple of dialects holds every declared one, and its order decides -------------------------------------------


MODEL = {**CHAT, "gen_ai.request.model": "m", "gen_ai.response.id": "r"}


def test_every_declared_dialect_stands_in_the_tuple_once_and_is_code_or_a_table() -> None:
    documented = [dialect.name for dialect in DIALECTS if dialect.rows()]

    assert not forgotten()
    assert {dialect for _, dialect in declared()} == set(DIALECTS)
    assert len(set(DIALECTS)) == len(DIALECTS)
    assert len(set(documented)) == len(documented)
    assert all((dialect.read is None) != (not dialect.fields) for dialect in DIALECTS)


def test_the_first_that_fits_reads_the_span() -> None:
    both = {"openinference.span.kind": "LLM", "ai.operationId": "ai.generateText.doGenerate"}

    assert trace_of(both).dialects == ("vercel_ai",)


def test_the_same_keys_under_another_scope_or_with_events_are_another_dialect() -> None:
    event = [("gen_ai.choice", {"message": "hi"})]
    other = {**MODEL, "gen_ai.response.id": "s"}

    trace = trace_of(
        MODEL,
        SpanSpec(attributes=other, scope="autogen-core"),
        SpanSpec(attributes=MODEL, events=event),
        scope="plainly",
    )

    assert trace.dialects == ("autogen", "genai", "genai_events")


def test_scopes_without_end_are_not_remembered() -> None:
    for number in range(100):
        trace_of(MODEL, scope=f"scope {number}")

    assert len(shape_of(frozenset(MODEL)).readers) <= 16


# --- a backend's scope or type on another instrumentation's span does not hide its content ---------------------------


ASKED, SAID = "What is 3+4?", "It is 7."
OTHERS: dict[str, dict[str, Any]] = {
    "vercel_ai": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": dump([{"role": "user", "content": ASKED}]),
        "ai.response.text": SAID,
        "ai.usage.inputTokens": 9,
        "ai.usage.outputTokens": 2,
    },
    "openinference": {
        **of("LLM"),
        **flat("input", {"role": "user", "content": ASKED}),
        **flat("output", {"role": "assistant", "content": SAID}),
        "llm.token_count.prompt": 9,
        "llm.token_count.completion": 2,
    },
    "genai": {
        **CHAT,
        "gen_ai.input.messages": asked(ASKED),
        "gen_ai.output.messages": says(SAID),
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 2,
    },
}
MARKS: dict[str, tuple[str, dict[str, str]]] = {
    "langfuse's scope": ("langfuse-sdk", {}),
    "langfuse's type": ("x", {"langfuse.observation.type": "generation"}),
    "langfuse's level": ("langfuse-sdk", {"langfuse.observation.level": "DEFAULT"}),
    "mlflow's scope": ("mlflow", {}),
    "mlflow's type": ("x", {"mlflow.spanType": '"CHAT_MODEL"'}),
}


@for_each("other", OTHERS)
@for_each("mark", MARKS)
def test_the_instrumentation_with_content_reads_the_span(mark: str, other: str) -> None:
    scope, attributes = MARKS[mark]
    trace = trace_of(SpanSpec(id=1, scope=scope, attributes={**OTHERS[other], **attributes}))

    assert (trace.input, trace.output, trace.dialects) == (ASKED, SAID, (other,))
    assert (trace.tokens.input, trace.tokens.output) == (9, 2)


def test_a_backends_own_content_comes_first() -> None:
    said = dump([{"role": "user", "content": "own"}])
    own = under("langfuse.observation.", type="generation", input=said)
    trace = trace_of(SpanSpec(id=1, scope="ai", attributes={**OTHERS["vercel_ai"], **own}))

    assert (trace.input, trace.dialects) == ("own", ("langfuse",))


def test_a_span_of_a_backend_alone_is_still_its_own() -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"langfuse.observation.type": "generation"}))

    assert trace.dialects == ("langfuse",)
    assert len(trace.model_calls) == 1


# --- the normalised trace as it is printed ---------------------------------------------------------------------------


CONTRACT = """
trace_id service agent agents session_id session_source user_id task_id input output tokens cost_usd models
tools_offered tool_calls status error root closed dialects spans truncated gaps
"""


def test_show_has_the_contracts_names_in_their_order() -> None:
    shown = show(trace_of(SpanSpec(attributes=tool("f"), start=1_000)))

    assert list(shown)[:23] == CONTRACT.split()
    of_call = "id name arguments result error rejected agent span_id"
    assert list(shown["tool_calls"][0]) == of_call.split()
    assert shown["start"] == "1970-01-01T00:00:01.000000Z"


def test_show_has_the_steps_of_agents() -> None:
    said = {"gen_ai.agent.name": "Orchestrator", "gen_ai.output.messages": says("Search.")}

    shown = show(trace_of(AGENT | said))

    step = {"agent": "Orchestrator", "output": "Search.", "span_id": "0000000000000001"}
    assert (shown["agents"], shown["steps"]) == (["Orchestrator"], [step])
