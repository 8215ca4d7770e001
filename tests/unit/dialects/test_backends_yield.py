"""A backend's scope or type on another instrumentation's span does not hide the content of that one."""

from typing import Any

from tests.support.conventions import CHAT, asked, says
from tests.support.dialect_spans import SpanSpec, trace_of, under
from tests.support.openinference import flat, of
from tests.support.table import for_each
from tests.support.weather import dump

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
