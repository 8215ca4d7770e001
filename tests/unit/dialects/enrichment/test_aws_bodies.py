"""The bodies of AWS's distribution: words are put back under the keys that their span had them under."""

from dataclasses import replace
from typing import Any

from tests.support.agent_records import words
from tests.support.conventions import CHAT, tool
from tests.support.dialect_spans import SpanSpec, changed, trace_of
from tests.support.openinference import SCOPE, of
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call

OI = SCOPE + "langchain"
TYPES = {f"{side}.mime_type": "application/json" for side in ("input", "output")}
LLM = of("LLM", llm__model_name="gpt-4o-mini", **TYPES)


def asking(message: str) -> dict[str, Any]:
    """A flattened message, under this key, that calls the tool."""
    call = f"{message}.tool_calls.0.tool_call"
    name, arguments = f"{call}.function.name", f"{call}.function.arguments"
    ids = {f"{message}.role": "assistant", f"{call}.id": "c1"}
    return {**ids, name: "get_weather", arguments: dump(ARGUMENTS)}


SENT, CAME = "llm.input_messages", "llm.output_messages.0.message"
HISTORY = {
    f"{SENT}.0.message.role": "user",
    **asking(f"{SENT}.1.message"),
    f"{SENT}.2.message.role": "tool",
    f"{SENT}.2.message.tool_call_id": "c1",
    f"{CAME}.role": "assistant",
}
ROOT = SpanSpec(id=5, end=9)


def body(sent: list[Any], received: list[Any]) -> dict[str, Any]:
    """A record's body with these contents; those received are all the assistant's."""
    sides = {"input": ("user", sent), "output": ("assistant", received)}
    return {
        side: {"messages": [{"role": role, "content": each} for each in contents]}
        for side, (role, contents) in sides.items()
    }


def record(given: dict[str, Any], scope: str = "some.scope") -> SpanSpec:
    """Of span 1."""
    return words(9, scope, 4, of=1, body=given, scope=scope)


def test_texts_return_to_the_messages_that_kept_their_roles() -> None:
    first = SpanSpec(id=2, parent=5, start=1, end=2, scope=OI, attributes=LLM | asking(CAME))
    second = SpanSpec(id=1, parent=5, start=3, end=4, scope=OI, attributes=LLM | HISTORY)
    raw = dump({"messages": [[]]})
    carried = {
        "input.value": raw,
        f"{SENT}.0.message.content": QUESTION,
        f"{SENT}.2.message.content": RESULT,
        "output.value": raw,
        f"{CAME}.content": ANSWER,
    }

    lent = trace_of(ROOT, first, second, record(body([raw, QUESTION, RESULT], [raw, ANSWER]), OI))
    whole = trace_of(ROOT, first, changed(second, **carried))

    assert replace(lent, digest="") == replace(whole, digest="")
    assert (lent.output, one_call(lent).result) == (ANSWER, RESULT)


@for_each("scope,own", [(OI, of("TOOL", tool__name="get_weather")), ("some.scope", tool())])
def test_a_tool_of_any_instrumentation_takes_its_arguments_and_its_result(
    scope: str, own: dict[str, Any]
) -> None:
    ran = SpanSpec(id=1, parent=5, end=2, scope=scope, attributes=own)

    call = one_call(trace_of(ROOT, ran, record(body([dump(ARGUMENTS)], [RESULT]), scope)))

    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)


def test_contents_that_are_objects_are_the_events_they_were() -> None:
    chat = {**CHAT, "gen_ai.system": "strands-agents"}
    use = dump([{"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ARGUMENTS}}])
    done = dump([{"toolResult": {"toolUseId": "c1", "content": [{"text": RESULT}]}}])
    user = {"content": dump([{"text": QUESTION}])}
    given = body(
        [user, {"content": done}], [{"content": use}, {"message": dump([{"text": ANSWER}])}]
    )
    given["input"]["messages"][1]["role"] = "tool"
    asked = SpanSpec(
        id=2,
        parent=5,
        attributes={**chat, "gen_ai.usage.output_tokens": 1},
        events=[("gen_ai.choice", {"message": use})],
    )
    answered = SpanSpec(id=1, parent=5, start=1, end=2, attributes=chat)

    trace = trace_of(ROOT, asked, answered, record(given, "strands.telemetry.tracer"))

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert one_call(trace).result == RESULT


def test_of_an_unknown_instrumentation_the_messages_are_the_conventions() -> None:
    trace = trace_of(CHAT, record(body([QUESTION], [ANSWER])))

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_no_index_is_too_long_to_be_read() -> None:
    attributes = {**LLM, f"{SENT}.{'9' * 5_000}.message.role": "user"}

    trace = trace_of(attributes, record(body([QUESTION], [ANSWER]), OI), scope=OI)

    assert trace.output == ANSWER
