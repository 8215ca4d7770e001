"""Schemas of tools out of traces are data: nothing is fetched, and a budget ends each that would take for ever."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.errors import Unjudgeable
from evaluators.matching import tool_calls
from evaluators.matching.json_values import encoded, object_of
from evaluators.matching.tool_calls import check_arguments
from evaluators.model import JSON, Score, Trace
from evaluators.providers.schemas import first_error
from evaluators.trace.argument_correctness import argument_correctness
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.evaluating import a_call, a_tool, a_trace, argument_error
from tests.support.growth import within_cpu
from tests.support.table import for_each


def test_a_reference_to_another_document_is_never_fetched() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"

        with pytest.raises(Unjudgeable):
            argument_error({"$ref": address}, {})

        with pytest.raises(BlockingIOError):
            server.accept()


@for_each(
    "schema,value,error",
    [
        ({"type": "object"}, {}, None),
        ({"type": "object"}, [], "[] is not of type 'object'"),
        ({"properties": {"a": {"properties": {"b": {"type": "integer"}}}}}, {"a": {"b": "x"}},
         "a/b: 'x' is not of type 'integer'"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}, "x", None),
        ({"pattern": r"^(\d{3}-)+\d{4}$"}, "555-123-4567", None),
        ({"pattern": r"^(\d{3}-)+\d{4}$"}, "555-12", r"'555-12' does not match '^(\\d{3}-)+\\d{4}$'"),
        ({"pattern": r"^[\u00e9-\u00eb]\/$"}, "\u00ea/", None),
        ({"pattern": r"\d"}, "\u0663", "'\u0663' does not match '\\\\d'"),
        ({"pattern": "^(?!a)"}, "a", None),
        (True, {"anything": 1}, None),
        (False, {}, "False schema does not allow {}"),
    ],
)  # fmt: skip
def test_an_error_in_arguments_names_its_path(schema: Any, value: Any, error: str | None) -> None:
    assert argument_error(schema, value) == error


def test_a_half_surrogate_in_arguments_is_judged_like_any_text() -> None:
    assert argument_error({"type": "object"}, {"city": "\ud800"}) is None
    assert encoded({"b": 1, "a": "\ud800"}) == b'{"a": "\\ud800", "b": 1}'


def test_the_first_of_several_errors_is_the_same_in_every_process() -> None:
    arguments = {f"a{number:02}": number for number in range(50)}

    error = argument_error({"additionalProperties": {"type": "string"}}, arguments)

    assert error == "a00: 0 is not of type 'string'"


# --- schemas that would take for ever are not judged ------------------------------------------------------------------


CPU = 10.0
"""Seconds after which a check counts as endless; on an idle machine each takes less than one."""
DEEP = 40


def doubling(keyword: str) -> JSON:
    """Every definition asks for the next one twice: 2^40 steps."""
    definitions: dict[str, Any] = {
        f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(DEEP)
    }
    definitions[f"a{DEEP}"] = {"type": "object"}
    return {"$defs": definitions, "$ref": "#/$defs/a0"}


def of_a(schema: JSON) -> JSON:
    return {"properties": {"a": schema}}


def pattern(text: str) -> JSON:
    return of_a({"pattern": text})


def inside(keyword: str) -> JSON:
    """The same below a `$schema` of its own."""
    schema = object_of(doubling(keyword)) or {}
    return {"$ref": "#/$defs/a0", "$defs": schema["$defs"], "allOf": [schema | {"$schema": DRAFT}]}


DRAFT = "https://json-schema.org/draft/2020-12/schema"
LONG = {"a": "a" * 256}
OBJECTS: JSON = {"a": [{"x": n, "y": {"z": n}} for n in range(2500)]}


THEN: dict[str, JSON] = {
    **{
        f"a{n}": {"if": True, "then": {"$ref": f"#/$defs/a{n + 1}"}, "$ref": f"#/$defs/a{n + 1}"}
        for n in range(DEEP)
    },
    f"a{DEEP}": {},
}
NAMED: dict[str, JSON] = {
    "x": {"$anchor": "x"},
    **{f"a{n}": {"type": "object"} for n in range(2_000)},
}


@for_each(
    ("schema", "arguments"),
    [
        (doubling("allOf"), {}),
        (doubling("anyOf"), []),
        (doubling("oneOf"), {}),
        (inside("allOf"), {}),
        ({"required": [[n] if n % 2 else n for n in range(8_000)]}, {}),
        ({"$defs": THEN, "$ref": "#/$defs/a0", "unevaluatedProperties": False}, {"a": 1}),
        ({"$defs": NAMED, "items": {"$ref": "#x"}}, [*range(8_000)]),
        ({"anyOf": [{"type": "string"}] * 3_000}, {"a": "x" * 60_000}),
        (pattern("(a|a)" * 30 + "b"), LONG),
        ({"patternProperties": {"(a+)+$": {}}, "additionalProperties": False}, {"a" * 40 + "!": 1}),
        (pattern("a*a*a*a*a*$b"), LONG),
        (pattern("^a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaaaaaaaaab$"), LONG),
        (pattern("a{1,200}a{1,200}a{1,200}b"), LONG),
        (pattern("[a-z]+[a-z]+[a-z]+[a-z]+[a-z]+!"), LONG),
        (pattern("(a|b|c|d)*" * 2_000), LONG),
        (of_a({"allOf": [{"pattern": f"a{{{n},1000}}b"} for n in range(900)]}), LONG),
        (of_a({"uniqueItems": True}), OBJECTS),
        (of_a({"uniqueItems": True}), {"a": [[[n]] for n in range(6000)]}),
        (of_a({"items": {"enum": [f"v{n}" for n in range(6000)]}}), {"a": ["w"] * 6000}),
        (of_a({"items": {"anyOf": [{"const": n} for n in range(3000)]}}), {"a": [2999] * 8000}),
    ],
)
def test_no_schema_takes_more_than_its_budget(schema: JSON, arguments: JSON) -> None:
    with within_cpu(CPU):
        try:
            argument_error(schema, arguments)
        except Unjudgeable:
            return


def test_the_calls_of_one_trace_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is just within the budget of one; that of the trace is a fifth of its own here, to be used up sooner."""
    monkeypatch.setattr(tool_calls, "TRACE_STEPS", tool_calls.TRACE_STEPS // 5)
    tool = a_tool("t", {"items": {"anyOf": [{"const": n} for n in range(300)]}})
    calls = tuple(a_call("t", arguments=[*[299] * 20, n]) for n in range(300))
    with within_cpu(20):
        judged, _ = check_arguments(a_trace(tools_offered=(tool,), tool_calls=calls))

    assert 5 < len(judged) < 40


TOOL: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "data" / "tool_schema.json").read_text()
)
"""A schema as tools declare it, and arguments that fit."""


@for_each(
    "changed,fits",
    [
        *(({}, True), ({"limit": 5.0}, True), ({"limit": 51}, False), ({"sort": "best"}, False)),
        *(({"after": 7}, False), ({"tags": ["a", "a"]}, False), ({"other": 1}, False)),
        ({"filters": [{"field": "Size"}]}, False),
    ],
)
def test_what_tools_declare_is_judged(changed: dict[str, JSON], fits: bool) -> None:
    assert (argument_error(TOOL["schema"], {**TOOL["arguments"], **changed}) is None) == fits


def costly(schema: JSON) -> Trace:
    """A call that fits its schema, and one of a tool whose schema cannot be checked whole."""
    tools = (a_tool("cheap", {}), a_tool("dear", schema))
    calls = (a_call("cheap", {"a": 1}), a_call("dear", {"a": "a" * 200}))
    return a_trace(tools_offered=tools, tool_calls=calls)


@for_each("schema", [doubling("allOf"), pattern("a(?=b)")])
@for_each("evaluate", [argument_correctness, tool_correctness])
def test_a_signal_says_what_was_too_costly_to_check(
    schema: JSON, evaluate: Callable[[Trace], Score]
) -> None:
    score = evaluate(costly(schema))

    assert score.value == 1.0
    assert "arguments: 1 of 2 calls have a schema that cannot be checked whole" in str(
        score.truncated
    )
    assert evaluate(costly({"type": "object"})).truncated is None


ENDLESS: JSON = {"allOf": [{"type": "object"}, {"$ref": "#"}]}


def deeper(frames: int) -> str:
    """What comes of an endless schema, so many frames nearer to the stack's end."""
    if frames:
        return deeper(frames - 1)
    with pytest.raises(Unjudgeable) as caught:
        first_error(json.dumps(ENDLESS), {})
    return str(caught.value)


def test_an_endless_schema_is_not_judged_wherever_the_stack_ends() -> None:
    """Where it ends inside of jsonschema's Rust, that panics, with what is no Exception."""
    assert {deeper(frames) for frames in range(24)} == {"RecursionError"}


def test_a_usual_schema_of_many_properties_is_judged() -> None:
    names = [f"p{n}" for n in range(400)]
    schema: JSON = {
        "$schema": DRAFT,
        "properties": {name: {"type": "string", "enum": ["a", "b"]} for name in names},
        "required": [*names],
    }

    assert argument_error(schema, dict.fromkeys(names, "a")) is None
    assert argument_error(schema, dict.fromkeys(names, "c")) is not None


def test_unique_items_are_still_distinguished_by_value() -> None:
    schema = of_a({"uniqueItems": True})

    assert argument_error(schema, {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1.0}]}) is not None
    assert argument_error(schema, {"a": [1, True, "1", [1], {"1": 1}]}) is None
    assert argument_error(schema, {"a": [[1, 2], [2, 1]]}) is None


def test_a_score_that_only_a_costly_schema_prevents_says_so() -> None:
    trace = costly(doubling("allOf"))
    score = argument_correctness(replace(trace, tool_calls=trace.tool_calls[1:]))

    assert score.value is None
    assert "cannot be checked whole" in str(score.explanation)
