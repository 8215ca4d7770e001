"""A mask in place of content is no content; a text that speaks of one is."""

from evaluators.dialects.content.tools import read_definitions
from evaluators.dialects.decoding.values import is_hidden
from evaluators.model import JSON
from tests.support.conventions import AGENT, asked, call, model, ran, said
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

MASKS = [
    *("***", "*" * 32, "__REDACTED__", "redacted-by-litellm", "HIDDEN:non-empty", "[REDACTED]"),
    *("<REDACTED>", "<redacted>", "[redacted by policy]", "<REDACTED:EMAIL>", "[REDACTED_PII]"),
    *("[Filtered]", "<masked>", "***REDACTED***", "[[ hidden ]]", "REDACTED"),
]
TEXTS = [
    *("", "**", "* one\n* two", "Redacted it, as you asked.", "Rome", "[removed]"),
    *("[redacted] and the rest of it", "<redacted>name</redacted>", "**Hidden valley**"),
    *("[" + "redacted " * 20 + "]", "Masked ball"),
]


@for_each("text,hidden", [*((each, True) for each in MASKS), *((each, False) for each in TEXTS)])
def test_a_mask_is_known(text: str, hidden: bool) -> None:
    assert is_hidden(text) is hidden


@for_each("mask", ["***", "[redacted by policy]"])
def test_a_masked_agent_has_gaps_and_no_words(mask: str) -> None:
    trace = trace_of(
        SpanSpec(id=1, attributes=AGENT, end=99),
        model(2, 1, asked(mask), said("", call("look_up", "c1"))),
        ran(3, 3, "look_up", arguments='{"a": 1}'),
        model(4, 5, answer=said(mask)),
    )

    assert (trace.input, trace.output) == (None, None)
    assert "no_content" in trace.gaps


def test_a_schema_whose_names_are_masked_asks_for_nothing() -> None:
    for name, is_known in (("***", False), ("a", True)):
        schema: JSON = {"properties": {"a": {}}, "required": [name]}
        (tool,) = read_definitions([{"name": "look_up", "parameters": schema}])
        assert (tool.parameters is not None) is is_known
