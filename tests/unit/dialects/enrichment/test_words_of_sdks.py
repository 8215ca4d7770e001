"""Bodies of legacy message events as the instrumentations of Bedrock, google-genai and Vertex AI write them."""

from typing import Any

from tests.support.agent_records import words
from tests.support.conventions import AGENT, CHAT
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, one_call

_Bodies = list[tuple[str, Any]]
"""Event after `gen_ai.`, and body; of one model call."""
NAME = "get_weather"
CALLS = [{"id": "c1", "type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}]
MADE = {"function_call": {"name": NAME, "args": ARGUMENTS}}
BACK = {"function_response": {"name": NAME, "response": {"result": RESULT}}}


def choice(**body: Any) -> tuple[str, Any]:
    return "choice", {"index": 0, "finish_reason": "stop", **body}


BEDROCK: tuple[_Bodies, _Bodies] = (
    [
        ("user.message", {"content": [{"text": QUESTION}]}),
        choice(message={"role": "assistant", "tool_calls": CALLS}),
    ],
    [
        ("user.message", {"content": [{"text": QUESTION}]}),
        ("assistant.message", {"tool_calls": CALLS}),
        ("tool.message", {"id": "c1", "content": RESULT}),
        choice(message={"role": "assistant", "content": [{"text": ANSWER}]}),
    ],
)
GOOGLE_GENAI: tuple[_Bodies, _Bodies] = (
    [("user.message", {"content": QUESTION}), choice(content={"role": "model", "parts": [MADE]})],
    [
        ("user.message", {"content": {"role": "user", "parts": [{"text": QUESTION}]}}),
        ("user.message", {"content": {"role": "model", "parts": [MADE]}}),
        ("user.message", {"content": {"role": "user", "parts": [BACK]}}),
        choice(content={"role": "model", "parts": [{"text": ANSWER}]}),
    ],
)
VERTEX: tuple[_Bodies, _Bodies] = (
    [
        ("user.message", {"role": "user", "content": QUESTION}),
        choice(message={"role": "model"}, tool_calls=CALLS),
    ],
    [
        ("user.message", {"role": "user", "content": QUESTION}),
        ("tool.message", {"role": "user", "id": "c1", "content": RESULT}),
        choice(message={"role": "model", "content": ANSWER}),
    ],
)


def records(call: int, at: int, bodies: _Bodies) -> list[SpanSpec]:
    return [
        words(10 * call + number, f"gen_ai.{event}", at + number, of=call, body=body)
        for number, (event, body) in enumerate(bodies)
    ]


@for_each("sdk", [BEDROCK, GOOGLE_GENAI, VERTEX])
def test_question_answer_call_and_result_are_read(sdk: tuple[_Bodies, _Bodies]) -> None:
    chat = {**CHAT, "gen_ai.request.model": "m"}

    trace = trace_of(
        SpanSpec(id=1, name="invoke_agent", end=900, attributes=AGENT),
        SpanSpec(id=2, parent=1, start=100, end=200, attributes=chat),
        *records(2, 110, sdk[0]),
        SpanSpec(id=3, parent=1, start=300, end=400, attributes=chat),
        *records(3, 310, sdk[1]),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.name, call.arguments) == (NAME, ARGUMENTS)
    assert RESULT in str(call.result)
