"""The bodies of AWS's distribution: words are put back under the keys that their span had them under."""

import json
from dataclasses import replace
from typing import Any

from tests.support.agent_records import words
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, one_call

OI = "openinference.instrumentation.langchain"
LLM = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-4o-mini",
    "input.mime_type": "application/json",
    "output.mime_type": "application/json",
}
CALL = "message.tool_calls.0.tool_call"
ASKED = {
    "llm.output_messages.0.message.role": "assistant",
    f"llm.output_messages.0.{CALL}.id": "c1",
    f"llm.output_messages.0.{CALL}.function.name": "get_weather",
    f"llm.output_messages.0.{CALL}.function.arguments": json.dumps(ARGUMENTS),
}
HISTORY = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.1.message.role": "assistant",
    f"llm.input_messages.1.{CALL}.id": "c1",
    f"llm.input_messages.1.{CALL}.function.name": "get_weather",
    f"llm.input_messages.1.{CALL}.function.arguments": json.dumps(ARGUMENTS),
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.tool_call_id": "c1",
    "llm.output_messages.0.message.role": "assistant",
}


ROOT = SpanSpec(id=5, end=9)


def body(sent: list[Any], received: list[Any]) -> dict[str, Any]:
    """A record's body with these contents; those received are all the assistant's."""
    return {
        "input": {"messages": [{"role": "user", "content": each} for each in sent]},
        "output": {"messages": [{"role": "assistant", "content": each} for each in received]},
    }


def test_texts_return_to_the_messages_that_kept_their_roles() -> None:
    first = SpanSpec(id=1, parent=5, start=1, end=2, scope=OI, attributes={**LLM, **ASKED})
    second = SpanSpec(id=2, parent=5, start=3, end=4, scope=OI, attributes={**LLM, **HISTORY})
    raw = json.dumps({"messages": [[]]})
    words_of_turn = words(
        9, OI, 4, of=2, body=body([raw, QUESTION, RESULT], [raw, ANSWER]), scope=OI
    )
    carried = {
        "input.value": raw,
        "llm.input_messages.0.message.content": QUESTION,
        "llm.input_messages.2.message.content": RESULT,
        "output.value": raw,
        "llm.output_messages.0.message.content": ANSWER,
    }

    lent = trace_of(ROOT, first, second, words_of_turn)
    whole = trace_of(ROOT, first, replace(second, attributes={**second.attributes, **carried}))

    assert replace(lent, digest="") == replace(whole, digest="")
    assert (lent.output, one_call(lent).result) == (ANSWER, RESULT)


def test_a_tool_takes_its_arguments_and_its_result() -> None:
    tool = SpanSpec(
        id=1,
        end=2,
        scope=OI,
        attributes={"openinference.span.kind": "TOOL", "tool.name": "get_weather"},
    )
    words_of_turn = words(9, OI, 2, of=1, body=body([json.dumps(ARGUMENTS)], [RESULT]), scope=OI)

    call = one_call(trace_of(tool, words_of_turn))

    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)


def test_contents_that_are_objects_are_the_events_they_were() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents"}
    use = [{"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ARGUMENTS}}]
    done = [{"toolResult": {"toolUseId": "c1", "content": [{"text": RESULT}]}}]
    sent = [
        {"role": "user", "content": {"content": json.dumps([{"text": QUESTION}])}},
        {"role": "tool", "content": {"content": json.dumps(done)}},
    ]
    received = [
        {"role": "assistant", "content": {"content": json.dumps(use)}},
        {"role": "assistant", "content": {"message": json.dumps([{"text": ANSWER}])}},
    ]
    record = words(
        9,
        "strands.telemetry.tracer",
        2,
        of=1,
        body={"input": {"messages": sent}, "output": {"messages": received}},
    )
    asked = SpanSpec(
        id=2,
        parent=5,
        attributes={**chat, "gen_ai.usage.output_tokens": 1},
        events=[("gen_ai.choice", {"message": json.dumps(use)})],
    )

    answered = SpanSpec(id=1, parent=5, start=1, end=2, attributes=chat)

    trace = trace_of(ROOT, asked, answered, record)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert one_call(trace).result == RESULT


def test_of_an_unknown_instrumentation_the_messages_are_the_conventions() -> None:
    span = SpanSpec(id=1, end=2, attributes={"gen_ai.operation.name": "chat"})
    record = words(9, "some.scope", 2, of=1, body=body([QUESTION], [ANSWER]))

    trace = trace_of(span, record)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_of_an_unknown_instrumentations_tool_they_are_arguments_and_result() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
    record = words(9, "some.scope", 2, of=1, body=body([json.dumps(ARGUMENTS)], [RESULT]))

    call = one_call(trace_of(ROOT, SpanSpec(id=1, parent=5, end=2, attributes=tool), record))

    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)


def test_no_index_is_too_long_to_be_read() -> None:
    attributes = {**LLM, f"llm.input_messages.{'9' * 5_000}.message.role": "user"}
    span = SpanSpec(id=1, end=2, scope=OI, attributes=attributes)
    record = words(9, OI, 2, of=1, body=body([QUESTION], [ANSWER]), scope=OI)

    assert trace_of(span, record).output == ANSWER
