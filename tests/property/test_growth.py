"""Reading and scoring a trace takes time in proportion to it: every kind of input is doubled, and twice is enough."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.receiver.feedback.found import FeedbackReader
from collector.records.feedback import FeedbackRules
from evaluators.dialects.joining.calls_in_messages import NEAR
from evaluators.dialects.read import read_trace
from evaluators.model import Trace
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request
from tests.support.growth import cpu_of, growth
from tests.support.recordings import recordings, requests
from tests.support.table import for_each

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]

MOST = 2.5
CAPTURES = Path(__file__).parents[1] / "data" / "captures"
Spans = Callable[[int], Iterable[SpanSpec]]


def span(
    number: int, parent: int = 1, name: str = "step", *, end: int = 10**7, **more: Any
) -> SpanSpec:
    """It starts at its number."""
    return SpanSpec(id=number, parent=parent, name=name, start=number, end=end, **more)


def chat(number: int, parent: int = 1, of: Mapping[str, Any] | None = None) -> SpanSpec:
    common = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return span(number, parent, "chat m", end=number + 1, attributes={**common, **(of or {})})


def tool(
    number: int, parent: int = 1, name: str = "lookup", of: Mapping[str, Any] | None = None
) -> SpanSpec:
    common = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    attributes = {**common, **(of or {})}
    return span(number, parent, f"execute_tool {name}", end=number + 1, attributes=attributes)


def agent(number: int, parent: int = 0) -> SpanSpec:
    of = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"a{number}"}
    return span(number, parent, f"invoke_agent a{number}", attributes=of)


def asks(number: int, *, ids: bool = True, name: str = "lookup", arguments: Any = None) -> Any:
    made: dict[str, Any] = {"type": "tool_call", "name": name, "arguments": arguments or {}}
    return {**made, "id": f"call-{number}"} if ids else made


# --- shapes of a trace ----------------------------------------------------------------------------------------------


def chain(
    make: Callable[[int, int], SpanSpec], count: int, *, ring: bool = False
) -> Iterable[SpanSpec]:
    """Every span the child of the one before; in a ring the first one is the child of the last."""
    return [make(n, n - 1 or (count if ring else 0)) for n in range(1, count + 1)]


def beside_calls(
    asked: Callable[[int], Any], beside: Callable[[int, int], SpanSpec], count: int
) -> Iterable[SpanSpec]:
    """As many calls asked for as spans beside them, which are given their id and the number of their call."""
    yield agent(1)
    for n in range(2, count + 2):
        answer = json.dumps([{"role": "assistant", "parts": [asked(n)]}])
        yield chat(n, of={"gen_ai.output.messages": answer})
        yield beside(count + n + 2, n)


def same_name_other_arguments(count: int, *, nested: bool = False) -> Iterable[SpanSpec]:
    """`nested`: as objects within, which have to be compared one by one."""

    def arguments(n: int) -> Any:
        return {"order": {"id": n} if nested else n}

    return beside_calls(
        lambda n: asks(n, ids=False, arguments=arguments(n)),
        lambda at, n: tool(at, of={"gen_ai.tool.call.arguments": json.dumps(arguments(-n))}),
        count,
    )


def traced_function(number: int, call: int) -> SpanSpec:
    """A function under a decorator, with other arguments than the call has."""
    arguments = json.dumps({"kwargs": {"order": -call}})
    of = {"traceloop.span.kind": "task", "traceloop.entity.name": "lookup"}
    return span(
        number,
        name="lookup.task",
        scope="traceloop.tracer",
        attributes={**of, "traceloop.entity.input": arguments},
    )


def results_without_ids(count: int) -> Iterable[SpanSpec]:
    """Histories that grow by a call and its result."""
    yield agent(1)
    history: list[Any] = [{"role": "user", "parts": [{"type": "text", "content": "go"}]}]
    for n in range(count):
        history.append({"role": "assistant", "parts": [asks(n, ids=False, arguments={"n": n})]})
        result = {"type": "tool_call_response", "response": f"r{n}"}
        history.append({"role": "tool", "parts": [result]})
    yield chat(2, of={"gen_ai.input.messages": json.dumps(history)})


def handoffs(count: int) -> Iterable[SpanSpec]:
    for n in range(1, count + 1):
        yield agent(2 * n)
        yield tool(2 * n + 1, 2 * n, f"transfer_to_b{n}")


def one_span(key: str, count: int, **more: str) -> Iterable[SpanSpec]:
    """A span with as many attributes."""
    return [span(1, 0, attributes={**more, **{key.format(n): "x" for n in range(count)}})]


def events_of_one_span(count: int) -> Iterable[SpanSpec]:
    events = [("gen_ai.user.message", {"content": f"text {n}"}) for n in range(count)]
    of = {"gen_ai.operation.name": "chat"}
    return [span(1, 0, "chat m", attributes=of, events=events)]


CALLS_OF_SPAN = "llm.input_messages.0.message.tool_calls.{}.tool_call.function.name"
SHAPES: dict[str, Spans] = {
    "chain of agents": partial(chain, agent),
    "chain of steps": partial(chain, span),
    "chain of tools": partial(chain, lambda n, parent: tool(n, parent, f"t{n}")),
    "ring of agents": partial(chain, agent, ring=True),
    "ring of models": partial(chain, chat, ring=True),
    "calls and spans by id": partial(
        beside_calls, partial(asks, name="wanted"), lambda at, _: tool(at, name="done")
    ),
    "calls and spans by name": partial(
        beside_calls, partial(asks, ids=False, name="wanted"), lambda at, _: tool(at, name="done")
    ),
    "calls and spans of many names": partial(
        beside_calls,
        lambda n: asks(n, ids=False, name=f"wanted{n}"),
        lambda at, n: tool(at, name=f"done{n}"),
    ),
    "same name, other arguments": same_name_other_arguments,
    "results without ids": results_without_ids,
    "plain spans": partial(
        beside_calls,
        lambda n: asks(n, name=f"wanted{n}"),
        lambda at, _: span(at, name="something else"),
    ),
    "plain spans of one tool": partial(
        beside_calls,
        lambda n: asks(n, arguments={"order": n}),
        lambda at, _: span(at, name="lookup"),
    ),
    "traced functions": partial(
        beside_calls, lambda n: asks(n, arguments={"order": n}), traced_function
    ),
    "hand-overs": handoffs,
    "attributes": partial(one_span, "llm.input_messages.{}.message.content"),
    "flat keys": partial(one_span, CALLS_OF_SPAN, **{"openinference.span.kind": "LLM"}),
    "events": events_of_one_span,
}


def reading(spans: Spans, count: int) -> Callable[[], object]:
    body = request(*spans(count))
    return lambda: read_trace([body], trace_id=TRACE_ID, closed="root_ended")


@for_each("shape", SHAPES)
def test_reading_grows_with_the_trace(shape: str) -> None:
    assert growth(partial(reading, SHAPES[shape]), 125, 8_000) < MOST


ANNOTATION = {"annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "good"}
ANNOTATED: dict[str, Spans] = {
    "every span says something of itself": lambda count: [
        chat(n, of=ANNOTATION) for n in range(1, count + 1)
    ],
    "one span says much of itself": partial(
        one_span, "annotations.{}.annotation.name", **{"gen_ai.operation.name": "chat"}
    ),
}


@pytest.mark.parametrize("shape", ANNOTATED)
def test_finding_what_is_said_grows_with_the_request(shape: str) -> None:
    reader = FeedbackReader(FeedbackRules(), lambda: 0.0)

    def finding(count: int) -> Callable[[], object]:
        body = request(*ANNOTATED[shape](count))
        return lambda: reader.in_otlp(body, "spans")

    assert growth(finding, 500, 16_000) < MOST


# --- texts ----------------------------------------------------------------------------------------------------------


def repeated(unit: str, size: int, *, head: str = "") -> str:
    return head + unit * (size // len(unit))


def system(text: str) -> str:
    return json.dumps([{"role": "system", "content": text}])


def text_in(key: str, make: Callable[[int], str], size: int) -> Callable[[], object]:
    """A model call that carries the text under a key, as each instrumentation would."""
    common = {"gen_ai.operation.name": "chat", "openinference.span.kind": "LLM"}
    kinds = {"traceloop.span.kind": "tool", "traceloop.entity.name": "lookup"}
    return reading(
        lambda count: [SpanSpec(id=1, name="x", attributes={**common, **kinds, key: make(count)})],
        size,
    )


KEYS = (
    "input.value",
    "output.value",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "gen_ai.prompt.0.content",
    "llm.input_messages.0.message.content",
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
    "crewai.crew.tasks",
    "gen_ai.tool.call.result",
)
DSPY_TOOL = "\n(1) a, whose description is <desc>"
TEXTS: dict[str, Callable[[int], str]] = {
    # A system prompt of DSPy whose tools are never described.
    "newlines of DSPy": lambda size: system(repeated("\n", size, head="[[ ## a ## ]]")),
    "tools of DSPy": lambda size: system(repeated(DSPY_TOOL, size)),
    "repr of lists": partial(repeated, "[", head="A(a="),
    "repr of calls": partial(repeated, "A(a=", head="A(a="),
    "repr of angles": partial(repeated, "<a ", head="A(a="),
    "repr of quotes": partial(repeated, "'", head="A(a="),
    "JSON that was cut": partial(repeated, "\\", head='{"a": "'),
}


@pytest.mark.parametrize("text", TEXTS)
def test_reading_grows_with_the_text(text: str) -> None:
    ratios = {key: growth(partial(text_in, key, TEXTS[text]), 4_000, 32_000) for key in KEYS}

    assert {key: ratio for key, ratio in ratios.items() if ratio >= MOST} == {}


def test_a_recording_of_dspy_grows_with_its_newlines() -> None:
    """The reader of its prompts is reached by a whole conversation only."""
    recording = next(iter(recordings(CAPTURES / "dspy")))
    bodies = list(requests(recording))

    def work(size: int) -> Callable[[], object]:
        made = [with_newlines(body, size) for body in bodies]
        first = ExportTraceServiceRequest.FromString(made[0])
        trace_id = first.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()
        return lambda: read_trace(made, trace_id=trace_id, closed="root_ended")

    assert growth(work, 2_000, 16_000) < MOST


def with_newlines(body: bytes, size: int) -> bytes:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                for attribute in span.attributes:
                    if len(attribute.value.string_value) > 60:
                        attribute.value.string_value += "\n" * size
    return request.SerializeToString()


def test_a_result_of_agno_is_read_in_proportion() -> None:
    kinds = {"traceloop.span.kind": "tool", "traceloop.entity.name": "lookup.tool"}

    def work(size: int) -> Callable[[], object]:
        output = {
            **kinds,
            "traceloop.entity.output": repeated(" error=", size, head="status='success' result="),
        }
        return reading(lambda _: [SpanSpec(id=1, name="lookup.tool", attributes=output)], 0)

    assert growth(work, 4_000, 32_000) < MOST


@pytest.mark.parametrize(
    "text",
    [
        repeated("B(b=1), ", 250_000, head="A(a=[") + "1])",
        repeated("{'a': [1]},", 60_000, head="[") + "]",
    ],
    ids=["objects", "literals"],
)
def test_one_trace_has_one_budget_however_many_texts_it_has(text: str) -> None:
    """Each text is within the limit of one; four times as many cost little more than the budget."""

    def work(count: int) -> Callable[[], None]:
        attributes = {"input.value": text, "openinference.span.kind": "LLM"}
        body = request(*[chat(n, of=attributes) for n in range(2, 2 + count)])

        def read() -> None:
            trace = read_trace([body], trace_id=TRACE_ID, closed="root_ended")
            assert "truncated" in trace.gaps

        return read

    most = 15_000_000 // len(text)
    assert cpu_of(work(most)) < 2 * cpu_of(work(most // 4))


@pytest.mark.parametrize("count", [500, 600])
def test_a_trace_says_that_not_every_candidate_of_a_join_was_looked_at(count: int) -> None:
    """Calls of one name with other arguments than the spans: some 500 are tried for each."""
    trace = reading(partial(same_name_other_arguments, nested=True), count)()

    assert isinstance(trace, Trace)
    assert ("truncated" in trace.gaps) == (count > NEAR)
