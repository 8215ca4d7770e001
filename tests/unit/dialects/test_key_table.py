"""Every row of the table behind docs/dialects.md is true, and results are read the same in every dialect."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from evaluators.dialects.decoding.values import as_dict, is_json
from evaluators.dialects.dialect import Dialect
from evaluators.dialects.fields import Row
from evaluators.dialects.registry import DIALECTS
from evaluators.matching.tool_uses import tool_uses
from evaluators.model import ToolCall, Trace
from tests.support.declared_dialects import unsampled
from tests.support.dialect_spans import SpanSpec, changed, trace_of
from tests.support.recorded_calls import ARGUMENTS, NAME, WRITERS
from tests.support.service import ROOT
from tests.support.table import for_each

WORD = "zanzibar"
OF_PROVIDERS = ("request_data", "response_data")
USAGE = {"input_tokens": 7, "output_tokens": 7}
COUNTS = [7, *map(json.dumps, (USAGE, {"usage": USAGE}, {"usage_metadata": USAGE}))]
IN_A_LIST = [json.dumps({"type": "function", "name": WORD, "inputSchema": {}})]
WRITTEN = json.loads((ROOT / "tests/data/dialects/written_values.json").read_text())
"""Field -> the values in which one dialect or another writes the word."""
CANDIDATES: dict[str, list[Any]] = {
    **{
        field: [each if isinstance(each, str) else json.dumps(each) for each in values]
        for field, values in WRITTEN.items()
    },
    "cost": [0.25, *(json.dumps({key: 0.25}) for key in ("total", "total_cost", "cost"))],
}
CANDIDATES["tools offered"].append(IN_A_LIST)


def rows() -> Iterator[Any]:
    for dialect in DIALECTS:
        for row in dialect.rows():
            for key in row.keys:
                yield dialect, row, key


def read(trace: Trace, field: str) -> Any:
    call = trace.tool_calls[0] if trace.tool_calls else None
    model = trace.model_calls[0] if trace.model_calls else None
    found: dict[str, Any] = {
        "input": trace.input,
        "output": trace.output,
        "system": trace.system,
        "tools offered": [[tool.name, tool.parameters] for tool in trace.tools_offered],
        "tool name": call and call.name,
        "tool call id": call and call.id,
        "arguments": call and call.arguments,
        "result": call and call.result,
        "input tokens": trace.tokens.input,
        "output tokens": trace.tokens.output,
        "cached tokens": trace.tokens.cached,
        "reasoning tokens": trace.tokens.reasoning,
        "cost": trace.cost_usd,
        "model": model and model.model,
        "agent": trace.agent,
        "session": trace.session_id,
        "user": trace.user_id,
    }
    return found[field]


def made(dialect: Dialect, row: Row, key: str, value: Any) -> SpanSpec:
    attributes: dict[str, Any] = dict(dialect.sample.spans[row.on])
    events: list[tuple[str, dict[str, Any]]] = []
    first = key.replace(".N.", ".0.")
    if key.startswith("event "):
        name, _, inner = key.removeprefix("event ").partition(": ")
        events.append((name, {inner: value}))
    else:
        attributes[first] = value
    if first != key and key.endswith("content"):
        role = "user" if row.field == "input" else "assistant"
        attributes[first.replace("content", "role")] = role
    if row.on == "tool" and row.field != "tool name":
        attributes.setdefault("gen_ai.tool.name", "some_tool")
    name = dialect.sample.names.get(row.on, "some_tool" if row.on == "tool" else "step")
    scope = "logfire.openai" if key in OF_PROVIDERS else dialect.sample.scope
    return SpanSpec(id=1, name=name, attributes=attributes, events=events, scope=scope)


@for_each("dialect", DIALECTS)
def test_a_dialect_has_a_sample_of_every_kind_of_span_that_its_rows_are_on(
    dialect: Dialect,
) -> None:
    assert unsampled(dialect) == []


@for_each(("dialect", "row", "key"), list(rows()))
def test_the_key_is_read(dialect: Dialect, row: Row, key: str) -> None:
    candidates = COUNTS if "tokens" in row.field else CANDIDATES.get(row.field, [WORD])
    wanted = 7 if "tokens" in row.field else 0.25 if row.field == "cost" else WORD

    found = [read(trace_of(made(dialect, row, key, value)), row.field) for value in candidates]

    assert any(
        each == wanted or (wanted == WORD and each is not None and WORD in json.dumps(each))
        for each in found
        if not (row.field in {"input", "output"} and each and ("{" in each or "[" in each))
    ), found


@for_each("dialect", DIALECTS)
def test_a_sample_is_read_as_its_dialect(dialect: Dialect) -> None:
    for on, attributes in dialect.sample.spans.items():
        events = [(f"{dialect.event}choice", {"content": WORD})] if dialect.event else []
        span = SpanSpec(
            name=dialect.sample.names.get(on, "step"), attributes=attributes, events=events
        )
        assert trace_of(span, scope=dialect.sample.scope).dialects == (dialect.name,)


RESULTS = [(d, row, key) for d, row, key in rows() if (row.field, row.on) == ("result", "tool")]


@for_each(("dialect", "row", "key"), RESULTS)
def test_an_empty_result_is_a_result(dialect: Dialect, row: Row, key: str) -> None:
    for value in ("", "  ", '""', "[]"):
        span = made(dialect, row, key, value)
        if dialect.name == "google_adk":  # it empties arguments as well where content is off
            span = changed(span, gcp__vertex__agent__tool_call_args='{"id": 7}')
        (call,) = trace_of(span).tool_calls
        (use,) = tool_uses((call,))

        assert (use.returned, use.empty) == (True, True), f"{value!r} is {call.result!r}"


@for_each(("dialect", "row", "key"), RESULTS)
def test_an_absent_result_stays_absent(dialect: Dialect, row: Row, key: str) -> None:
    span = made(dialect, row, key, WORD)
    left = replace(changed(span, key.replace(".N.", ".0.")), events=())

    for call in trace_of(left).tool_calls:
        assert call.result is None


# --- what an envelope adds to a result changes nothing, and what a tool wrote stays ----------------------------------


RECORDED_RESULTS = [
    json.loads(line) for line in (ROOT / "tests/data/tool_results.jsonl").read_text().splitlines()
]
"""Kind `envelope`: of the result 12. `failed`: because bay 4 is locked. `own`: what tools return of themselves."""


def _templates(kind: str, writer: str) -> list[str]:
    found = [row["result"] for row in RECORDED_RESULTS if row["kind"] == kind]
    if writer == "adk's messages":  # Gemini's results are objects
        found = [each for each in found if isinstance(each, dict)]
    return [each if isinstance(each, str) else json.dumps(each) for each in found]


def _calls(writer: str, template: str) -> tuple[ToolCall, ...]:
    results = [template.replace("$ID", f"call_{n}abc").replace("$N", str(n)) for n in (1, 2)]
    recorded = [(f"call_{n}abc", result) for n, result in enumerate(results, 1)]
    return trace_of(*WRITERS[writer](recorded)).tool_calls


def _value(result: Any) -> Any:
    """As JSON, without the one key that ADK and Gemini put around a text."""
    value = json.loads(result) if isinstance(result, str) and is_json(result) else result
    inner = as_dict(value)
    return _value(inner["result"]) if inner.keys() == {"result"} else value


@for_each("writer", WRITERS)
def test_what_an_envelope_adds_to_a_result_makes_no_two_results_of_one(writer: str) -> None:
    for template in _templates("envelope", writer):
        calls = _calls(writer, template)
        read = [(call.name, call.arguments, call.error) for call in calls]
        assert read == [(NAME, ARGUMENTS, None)] * 2, template
        assert all(_value(call.result) in (12, {"output": "12"}) for call in calls), template


@for_each("writer", WRITERS)
def test_a_failed_call_is_one_and_says_why(writer: str) -> None:
    for template in _templates("failed", writer):
        calls = _calls(writer, template)
        assert [call.failed for call in calls] == [True, True], template
        assert "bay 4 is locked" in f"{calls[0].error} {calls[0].result}", template


@for_each("writer", WRITERS)
def test_what_a_tool_wrote_itself_stays_and_is_no_failure(writer: str) -> None:
    for template in _templates("own", writer):
        calls = _calls(writer, template)
        assert [(c.error, _value(c.result)) for c in calls] == [(None, _value(template))] * 2
