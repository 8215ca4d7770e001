"""A mask in place of content is no content; a text that speaks of one is."""

from typing import Any

from evaluators.dialects.content.tools import read_definitions
from evaluators.dialects.decoding.values import is_hidden
from evaluators.model import JSON
from tests.support.conventions import AGENT, CHAT, asked, call, model, ran, said
from tests.support.dialect_spans import SpanSpec, trace_of, under
from tests.support.openinference import flat, of
from tests.support.table import for_each
from tests.support.weather import one_call

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


KOOG = dict.fromkeys(("input.messages", "output.messages", "tool.definitions"), "HIDDEN:non-empty")
OPENINFERENCE = {f"{side}.value": "__REDACTED__" for side in ("input", "output")}
BY_LITELLM = "redacted-by-litellm"
LITELLM = {
    "messages": [{"role": "user", "content": BY_LITELLM}],
    "choices": [{"index": 0, "message": {"role": "assistant", "content": BY_LITELLM}}],
}
HIDDEN: dict[str, dict[str, Any]] = {
    "ai.koog": {**CHAT, "koog.event.id": "e", **under("gen_ai.", **KOOG)},
    "openinference.instrumentation.langchain": of("LLM")
    | flat("input", {"role": "user", "content": "__REDACTED__"})
    | OPENINFERENCE,
    "litellm": {
        "gen_ai.request.model": "gpt-4o",
        **under("gen_ai.prompt.0.", role="user", content=BY_LITELLM),
        **under("llm.openai.", **{key: repr(value) for key, value in LITELLM.items()}),
    },
}


@for_each("scope", HIDDEN)
def test_what_a_library_hides_is_no_content(scope: str) -> None:
    trace = trace_of(HIDDEN[scope], scope=scope)

    assert (trace.input, trace.output, trace.tools_offered) == (None, None, ())
    assert "no_content" in trace.gaps


def test_arguments_and_results_that_are_hidden_are_none() -> None:
    hidden = ran(1, 0, "f", arguments="HIDDEN:empty", result="HIDDEN:empty")

    found = one_call(trace_of(hidden))
    assert (found.arguments, found.result, found.error) == (None, None, None)


def test_a_schema_whose_names_are_masked_asks_for_nothing() -> None:
    for name, is_known in (("***", False), ("a", True)):
        schema: JSON = {"properties": {"a": {}}, "required": [name]}
        (tool,) = read_definitions([{"name": "look_up", "parameters": schema}])
        assert (tool.parameters is not None) is is_known
