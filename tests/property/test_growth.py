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
from tests.support.cpu import cpu_of
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request
from tests.support.growth import growth
from tests.support.recordings import recordings, requests
from tests.support.table import for_each

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]

MOST = 2.5
CAPTURES = Path(__file__).parents[1] / "data" / "captures"
Spans = Callable[[int], Iterable[SpanSpec]]


def chat(number: int, attributes: Mapping[str, Any] | None = None, *, parent: int = 1) -> SpanSpec:
    common = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return SpanSpec(
        id=number,
        parent=parent,
        name="chat m",
        start=number,
        end=number + 1,
        attributes={**common, **(attributes or {})},
    )


def tool(
    number: int,
    attributes: Mapping[str, Any] | None = None,
    *,
    parent: int = 1,
    name: str = "lookup",
) -> SpanSpec:
    common = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return SpanSpec(
        id=number,
        parent=parent,
        name=f"execute_tool {name}",
        start=number,
        end=number + 1,
        attributes={**common, **(attributes or {})},
    )


def agent(number: int, *, parent: int = 0, name: str = "desk") -> SpanSpec:
    return SpanSpec(
        id=number,
        parent=parent,
        name=f"invoke_agent {name}",
        start=number,
        end=10**7,
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name},
    )


def said(*parts: Any, role: str = "assistant") -> str:
    return json.dumps([{"role": role, "parts": list(parts)}])


def asks(number: int, *, ids: bool = True, name: str = "lookup", arguments: Any = None) -> Any:
    made: dict[str, Any] = {"type": "tool_call", "name": name, "arguments": arguments or {}}
    return {**made, "id": f"call-{number}"} if ids else made


# --- shapes of a trace ----------------------------------------------------------------------------------------------


def chain(count: int) -> Iterable[SpanSpec]:
    """Every span the child of the one before, agents all of them."""
    return [agent(n, parent=n - 1, name=f"a{n}") for n in range(1, count + 1)]


def chain_of_steps(count: int) -> Iterable[SpanSpec]:
    return [
        SpanSpec(id=n, parent=n - 1, name="step", start=n, end=10**7) for n in range(1, count + 1)
    ]


def chain_of_tools(count: int) -> Iterable[SpanSpec]:
    return [tool(n, parent=n - 1, name=f"t{n}") for n in range(1, count + 1)]


def ring(count: int) -> Iterable[SpanSpec]:
    return [agent(n, parent=n - 1 or count, name=f"a{n}") for n in range(1, count + 1)]


def ring_of_models(count: int) -> Iterable[SpanSpec]:
    return [chat(n, parent=n - 1 or count) for n in range(1, count + 1)]


def calls_and_spans(count: int, *, ids: bool, names: bool = False) -> Iterable[SpanSpec]:
    """As many calls asked for as tool spans, none of which fits."""
    yield agent(1)
    for n in range(2, count + 2):
        asked = asks(n, ids=ids, name=f"wanted{n if names else ''}")
        yield chat(n, {"gen_ai.output.messages": said(asked)})
        yield tool(count + n + 2, name=f"done{n if names else ''}")


def same_name_other_arguments(count: int, *, nested: bool = False) -> Iterable[SpanSpec]:
    """`nested`: as objects within, which have to be compared one by one."""
    yield agent(1)
    for n in range(2, count + 2):
        wanted, done = ({"order": {"id": i} if nested else i} for i in (n, -n))
        asked = asks(n, ids=False, arguments=wanted)
        yield chat(n, {"gen_ai.output.messages": said(asked)})
        yield tool(count + n + 2, {"gen_ai.tool.call.arguments": json.dumps(done)})


def results_without_ids(count: int) -> Iterable[SpanSpec]:
    """Histories that grow by a call and its result."""
    yield agent(1)
    history: list[Any] = [{"role": "user", "parts": [{"type": "text", "content": "go"}]}]
    for n in range(count):
        history.append({"role": "assistant", "parts": [asks(n, ids=False, arguments={"n": n})]})
        result = {"type": "tool_call_response", "response": f"r{n}"}
        history.append({"role": "tool", "parts": [result]})
    yield chat(2, {"gen_ai.input.messages": json.dumps(history)})


def many_plain_spans(count: int) -> Iterable[SpanSpec]:
    """Hand-written spans beside calls that were only asked for."""
    yield agent(1)
    for n in range(2, count + 2):
        yield chat(n, {"gen_ai.output.messages": said(asks(n, name=f"wanted{n}"))})
        yield SpanSpec(
            id=count + n + 2, parent=1, name="something else", start=count + n, end=10**7
        )


def plain_spans_of_one_tool(count: int) -> Iterable[SpanSpec]:
    """Hand-written spans of a tool beside calls of it with other arguments."""
    yield agent(1)
    for n in range(2, count + 2):
        yield chat(n, {"gen_ai.output.messages": said(asks(n, arguments={"order": n}))})
        yield SpanSpec(id=count + n + 2, parent=1, name="lookup", start=count + n, end=10**7)


def traced_functions(count: int) -> Iterable[SpanSpec]:
    """Functions under a decorator beside calls of them with other arguments."""
    yield agent(1)
    for n in range(2, count + 2):
        yield chat(n, {"gen_ai.output.messages": said(asks(n, arguments={"order": n}))})
        traced = {"traceloop.span.kind": "task", "traceloop.entity.name": "lookup"}
        yield SpanSpec(
            id=count + n + 2,
            parent=1,
            name="lookup.task",
            start=count + n,
            end=10**7,
            scope="traceloop.tracer",
            attributes={**traced, "traceloop.entity.input": json.dumps({"kwargs": {"order": -n}})},
        )


def handoffs(count: int) -> Iterable[SpanSpec]:
    for n in range(1, count + 1):
        yield agent(2 * n, parent=0, name=f"a{n}")
        yield tool(2 * n + 1, parent=2 * n, name=f"transfer_to_b{n}")


def attributes_of_one_span(count: int) -> Iterable[SpanSpec]:
    return [
        SpanSpec(
            id=1,
            name="step",
            attributes={f"llm.input_messages.{n}.message.content": "x" for n in range(count)},
        )
    ]


def nested_flat_keys(count: int) -> Iterable[SpanSpec]:
    key = "llm.input_messages.0.message.tool_calls.{}.tool_call.function.name"
    return [
        SpanSpec(
            id=1,
            attributes={
                "openinference.span.kind": "LLM",
                **{key.format(n): "t" for n in range(count)},
            },
        )
    ]


def events_of_one_span(count: int) -> Iterable[SpanSpec]:
    events = [("gen_ai.user.message", {"content": f"text {n}"}) for n in range(count)]
    return [
        SpanSpec(id=1, name="chat m", attributes={"gen_ai.operation.name": "chat"}, events=events)
    ]


SHAPES: dict[str, Spans] = {
    "chain of agents": chain,
    "chain of steps": chain_of_steps,
    "chain of tools": chain_of_tools,
    "ring of agents": ring,
    "ring of models": ring_of_models,
    "calls and spans by id": partial(calls_and_spans, ids=True),
    "calls and spans by name": partial(calls_and_spans, ids=False),
    "calls and spans of many names": partial(calls_and_spans, ids=False, names=True),
    "same name, other arguments": same_name_other_arguments,
    "results without ids": results_without_ids,
    "plain spans": many_plain_spans,
    "plain spans of one tool": plain_spans_of_one_tool,
    "traced functions": traced_functions,
    "hand-overs": handoffs,
    "attributes": attributes_of_one_span,
    "flat keys": nested_flat_keys,
    "events": events_of_one_span,
}


def reading(spans: Spans, count: int) -> Callable[[], object]:
    body = request(*spans(count))
    return lambda: read_trace([body], trace_id=TRACE_ID, closed="root_ended")


@for_each("shape", SHAPES)
def test_reading_grows_with_the_trace(shape: str) -> None:
    assert growth(partial(reading, SHAPES[shape]), 125, 8_000) < MOST


def annotated(count: int) -> Iterable[SpanSpec]:
    """Every span says something of itself."""
    said = {"annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "good"}
    return [chat(n, said) for n in range(1, count + 1)]


def many_annotations(count: int) -> Iterable[SpanSpec]:
    """One span says much of itself."""
    fields = {f"annotations.{n}.annotation.name": f"n{n}" for n in range(count)}
    return [chat(1, fields)]


@pytest.mark.parametrize("shape", [annotated, many_annotations])
def test_finding_what_is_said_grows_with_the_request(shape: Spans) -> None:
    reader = FeedbackReader(FeedbackRules(), lambda: 0.0)

    def finding(count: int) -> Callable[[], object]:
        body = request(*shape(count))
        return lambda: reader.in_otlp(body, "spans")

    assert growth(finding, 500, 16_000) < MOST


# --- texts ----------------------------------------------------------------------------------------------------------


def dspy_prompt(size: int) -> str:
    """A system prompt of DSPy whose tools are never described."""
    return json.dumps([{"role": "system", "content": "[[ ## a ## ]]" + "\n" * size}])


def dspy_tools(size: int) -> str:
    text = "\n(1) a, whose description is <desc>" * (size // 34)
    return json.dumps([{"role": "system", "content": text}])


def agno_result(size: int) -> str:
    return "status='success' result=" + " error=" * (size // 7)


def repr_of(size: int, unit: str, *, head: str = "A(a=") -> str:
    return head + unit * (size // len(unit))


def truncated(size: int) -> str:
    return '{"a": "' + "\\" * size


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
TEXTS: dict[str, Callable[[int], str]] = {
    "newlines of DSPy": dspy_prompt,
    "tools of DSPy": dspy_tools,
    "repr of lists": partial(repr_of, unit="["),
    "repr of calls": partial(repr_of, unit="A(a="),
    "repr of angles": partial(repr_of, unit="<a "),
    "repr of quotes": partial(repr_of, unit="'"),
    "JSON that was cut": truncated,
}


@pytest.mark.parametrize("text", TEXTS)
def test_reading_grows_with_the_text(text: str) -> None:
    ratios = {key: growth(partial(text_in, key, TEXTS[text]), 4_000, 32_000) for key in KEYS}

    assert {key: ratio for key, ratio in ratios.items() if ratio >= MOST} == {}


def test_a_recording_of_dspy_grows_with_its_newlines() -> None:
    """The reader of its prompts is reached by a whole conversation only."""
    recording = next(recordings(CAPTURES / "dspy").__iter__())
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
        output = {**kinds, "traceloop.entity.output": agno_result(size)}
        return reading(lambda _: [SpanSpec(id=1, name="lookup.tool", attributes=output)], 0)

    assert growth(work, 4_000, 32_000) < MOST


@pytest.mark.parametrize(
    "text",
    [
        repr_of(250_000, "B(b=1), ", head="A(a=[") + "1])",
        repr_of(60_000, "{'a': [1]},", head="[") + "]",
    ],
    ids=["objects", "literals"],
)
def test_one_trace_has_one_budget_however_many_texts_it_has(text: str) -> None:
    """Each text is within the limit of one; four times as many cost little more than the budget."""

    def work(count: int) -> Callable[[], None]:
        attributes = {"input.value": text, "openinference.span.kind": "LLM"}
        body = request(*[chat(n, attributes) for n in range(2, 2 + count)])

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
