"""Tool schemas that a trace brings along and that would take for ever: a budget ends each, and it is not judged."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evaluators.errors import Unjudgeable
from evaluators.matching import tool_calls
from evaluators.matching.json_values import object_of
from evaluators.matching.tool_calls import check_arguments
from evaluators.model import JSON, Score, Trace
from evaluators.providers.schemas import first_error
from evaluators.trace.argument_correctness import argument_correctness
from evaluators.trace.tool_correctness import tool_correctness
from tests.support.cpu import within_cpu
from tests.support.evaluating import a_call, a_tool, a_trace, argument_error
from tests.support.table import for_each

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


def test_a_usual_schema_of_many_properties_is_judged() -> None:
    names = [f"p{n}" for n in range(400)]
    schema: JSON = {
        "$schema": DRAFT,
        "properties": {name: {"type": "string", "enum": ["a", "b"]} for name in names},
        "required": [*names],
    }

    assert argument_error(schema, dict.fromkeys(names, "a")) is None
    assert argument_error(schema, dict.fromkeys(names, "c")) is not None


TOOL = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        "sort": {"enum": ["new", "old", None]},
        "after": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}, "uniqueItems": True},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
    },
    "required": ["query"],
    "additionalProperties": False,
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {
                "field": {"type": "string", "pattern": "^[a-z]+$"},
                "values": {"items": {"anyOf": [{"type": "number"}, {"type": "string"}]}},
                "and": {"$ref": "#/$defs/Filter"},
            },
            "required": ["field"],
        }
    },
}
FITS = {
    "query": "shoes " * 40,
    "limit": 5,
    "sort": None,
    "after": None,
    "tags": ["a", "b"],
    "filters": [{"field": "size", "values": [41, "42", 43.5], "and": {"field": "colour"}}],
}


@for_each(
    "changed,fits",
    [
        *(({}, True), ({"limit": 5.0}, True), ({"limit": 51}, False), ({"sort": "best"}, False)),
        *(({"after": 7}, False), ({"tags": ["a", "a"]}, False), ({"other": 1}, False)),
        ({"filters": [{"field": "Size"}]}, False),
    ],
)
def test_what_tools_declare_is_judged(changed: dict[str, JSON], fits: bool) -> None:
    assert (argument_error(TOOL, {**FITS, **changed}) is None) == fits


def test_unique_items_are_still_distinguished_by_value() -> None:
    schema = of_a({"uniqueItems": True})

    assert argument_error(schema, {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1.0}]}) is not None
    assert argument_error(schema, {"a": [1, True, "1", [1], {"1": 1}]}) is None
    assert argument_error(schema, {"a": [[1, 2], [2, 1]]}) is None


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


def test_a_score_that_only_a_costly_schema_prevents_says_so() -> None:
    trace = costly(doubling("allOf"))
    score = argument_correctness(replace(trace, tool_calls=trace.tool_calls[1:]))

    assert score.value is None
    assert "cannot be checked whole" in str(score.explanation)


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
