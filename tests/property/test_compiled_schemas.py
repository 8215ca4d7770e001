"""A schema's compiled check says nothing but what jsonschema would: the same answer, and the same steps."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.errors import Unjudgeable
from evaluators.matching.json_values import encoded
from evaluators.model import JSON
from evaluators.providers.compiled_schemas import DEPTH
from evaluators.providers.schemas import Counted, counted_error, fitting
from tests.support.examples import examples

NAMES = ("a", "b", "c", "$ref", "long name with more than sixteen characters")
TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")
DRAFTS = (
    None,
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
scalars = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        3,
        1.0,
        2.5,
        1e300,
        math.inf,
        "",
        "a",
        "b",
        "ab",
        "\u00e9" * 17,
        "a" * 300,
    ]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)
counts = st.integers(0, 3)
numbers = st.sampled_from([0, 1, -1, 0.5, 3.0])


def keywords_of(inner: st.SearchStrategy[JSON]) -> dict[str, st.SearchStrategy[JSON]]:
    """Every compiled keyword, and some that are not."""
    some = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    types = st.sampled_from(TYPES)
    return {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "properties": by_name,
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "additionalProperties": inner,
        "items": inner,
        "enum": st.lists(values, min_size=1, max_size=4),
        "const": values,
        "anyOf": some,
        "allOf": some,
        "oneOf": some,
        "not": inner,
        "patternProperties": by_name,
        "prefixItems": some,
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#/$defs/none", "#", "#/properties/a"]),
        "$id": st.sampled_from(["here", "urn:there"]),
        "pattern": st.sampled_from(["^a", "b$", "a+", "(a+)+$", "("]),
        "format": st.just("date"),
        "title": st.just("A title"),
        "uniqueItems": st.booleans(),
        "multipleOf": st.sampled_from([0.5, 1, 2]),
        **{name: numbers for name in LIMITS if name.endswith("imum")},
        **{name: counts for name in LIMITS if not name.endswith("imum")},
    }


LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
)


def schema_of(inner: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    """A schema of few keywords: with many, nothing fits."""
    keywords = keywords_of(inner)
    names = st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen})
    )


nested = st.recursive(st.booleans(), schema_of, max_leaves=6)
drafts = st.sampled_from(DRAFTS)


@st.composite
def whole(draw: st.DrawFn) -> JSON:
    """A schema with definitions, of any draft."""
    schema: JSON = {
        **draw(schema_of(nested)),
        "$defs": {"x": draw(nested), "y": draw(nested)},
    }
    draft = draw(st.sampled_from(DRAFTS))
    return schema if draft is None else {"$schema": draft, **schema}


def both(schema: JSON, value: JSON) -> tuple[Counted | str, Counted | str, bool]:
    """What comes of a check with and without the compiled one, and whether that one decided."""
    slow = _counted(schema, value)
    fast = fitting(json.dumps(schema), value)
    return fast or slow, slow, fast is not None


def _counted(schema: JSON, value: JSON) -> Counted | str:
    try:
        return counted_error(json.dumps(schema), json.loads(encoded(value)))
    except Unjudgeable as why:
        return str(why)


@settings(max_examples=examples(200), deadline=None)
@given(schema=whole(), value=values)
def test_the_compiled_check_changes_nothing(schema: JSON, value: JSON) -> None:
    fast, slow, _ = both(schema, value)

    assert fast == slow


TOOL = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "title": "Search",
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


@pytest.mark.parametrize(
    ("changed", "fits"),
    [
        ({}, True),
        ({"limit": 5.0}, True),
        ({"limit": 51}, False),
        ({"sort": "best"}, False),
        ({"after": 7}, False),
        ({"tags": ["a", "a"]}, False),
        ({"other": 1}, False),
        ({"filters": [{"field": "Size"}]}, False),
    ],
)
def test_what_tools_declare_is_compiled(changed: JSON, fits: bool) -> None:
    fast, slow, was_compiled = both(TOOL, {**FITS, **changed})

    assert fast == slow
    assert isinstance(fast, Counted)
    assert (fast.error is None, was_compiled) == (fits, fits)


OBJECT: JSON = {}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        # More steps than a call has.
        (
            {"items": {"properties": dict.fromkeys(map(str, range(900)), True)}},
            [OBJECT] * 900,
        ),
        ({"items": {"enum": list(range(3000))}}, [1] * 20_000),
        # Deeper than what is compiled, without end, and everywhere twice.
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"a": 1}),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}},
            json.loads("[" * 300 + "]" * 300),
        ),
        (
            {
                "$ref": "#/$defs/0",
                "$defs": {
                    str(n): {"properties": {k: {"$ref": f"#/$defs/{n + 1}"} for k in "ab"}}
                    for n in range(DEPTH + 4)
                },
            },
            {"a": {"b": {}}},
        ),
    ],
)
def test_a_hostile_schema_comes_to_the_same(schema: JSON, value: JSON) -> None:
    fast, slow, _ = both(schema, value)

    assert fast == slow


LONG = "a word " * 40


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [{"type": ["null", "array"]}, {"type": "string"}]}, LONG),
        ({"anyOf": [{"type": "object"}, {"items": {"type": "string"}}]}, [LONG, LONG]),
        ({"items": {"enum": ["a", LONG]}}, ["a", LONG, "a"]),
        ({"items": {"const": LONG}}, [LONG, LONG]),
        ({"required": [f"a{n}" for n in range(40)]}, {f"a{n}": n for n in range(50)}),
        ({"items": {"pattern": "a+ w+"}, "uniqueItems": True}, [LONG]),
    ],
)
def test_what_is_long_takes_as_many_steps(schema: JSON, value: JSON) -> None:
    fast, slow, was_compiled = both(schema, value)

    assert was_compiled
    assert fast == slow


def test_infinity_is_left_to_jsonschema() -> None:
    fast, slow, was_compiled = both({"items": {"type": "number"}}, [math.inf])

    assert not was_compiled
    assert fast == slow
