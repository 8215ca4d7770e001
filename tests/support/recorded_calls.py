"""Calls of one tool as each dialect records them, to put the same result into all of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluators.dialects.decoding.values import as_dict, is_json
from tests.support.agent_records import words
from tests.support.dialect_spans import SpanSpec
from tests.support.weather import dump

NAME, ARGUMENTS = "count_pallets", {"bay": 4}
Calls = Sequence[tuple[str, str]]
"""The id and the recorded result of each call, in order."""
Write = Callable[[Calls], list[SpanSpec]]
Events = Sequence[tuple[str, Mapping[str, Any]]]

_ROOT = SpanSpec(id=1, name="agent", end=99)
_GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": NAME}
_ASKED = "How many pallets are in bay 4?"


def _value(recorded: str) -> Any:
    return json.loads(recorded) if is_json(recorded) else recorded


def _genai(call: str, result: str) -> dict[str, Any]:
    given = {"gen_ai.tool.call.arguments": dump(ARGUMENTS), "gen_ai.tool.call.result": result}
    return {**_GENAI, "gen_ai.tool.call.id": call, **given}


def _nameless(call: str, result: str) -> dict[str, Any]:
    return {k: v for k, v in _genai(call, result).items() if k != "gen_ai.tool.call.id"}


def _openinference(_: str, result: str) -> dict[str, Any]:
    sides = {"input.value": dump(ARGUMENTS), "output.value": result}
    return {"openinference.span.kind": "TOOL", "tool.name": NAME, **sides}


def _traceloop(_: str, result: str) -> dict[str, Any]:
    given = {"input_str": str(ARGUMENTS), "inputs": ARGUMENTS, "kwargs": {"name": NAME}}
    sides = {"traceloop.entity.input": dump(given), "traceloop.entity.output": result}
    return {"traceloop.span.kind": "tool", "traceloop.entity.name": NAME, **sides}


def _vercel(call: str, result: str) -> dict[str, Any]:
    told = {"name": NAME, "id": call, "args": dump(ARGUMENTS), "result": result}
    return {"ai.operationId": "ai.toolCall"} | {f"ai.toolCall.{k}": v for k, v in told.items()}


def _langfuse(_: str, result: str) -> dict[str, Any]:
    told = {"type": "tool", "input": dump(ARGUMENTS), "output": result}
    return {f"langfuse.observation.{k}": v for k, v in told.items()}


def _mlflow(_: str, result: str) -> dict[str, Any]:
    output = result if is_json(result) else dump(result)
    sides = {"mlflow.spanInputs": dump(ARGUMENTS), "mlflow.spanOutputs": output}
    return {"mlflow.spanType": '"TOOL"', **sides}


def _pydantic_ai(call: str, result: str) -> dict[str, Any]:
    told = {"tool_arguments": dump(ARGUMENTS), "tool_response": result}
    return {"gen_ai.tool.name": NAME, "gen_ai.tool.call.id": call, **told}


def _adk(call: str, result: str) -> dict[str, Any]:
    told = {"tool_call_args": dump(ARGUMENTS), "tool_response": result}
    named = {**_GENAI, "gen_ai.tool.call.id": call}
    return named | {f"gcp.vertex.agent.{k}": v for k, v in told.items()}


def _langwatch(_: str, result: str) -> dict[str, Any]:
    value = _value(result)
    output = {"type": "text" if isinstance(value, str) else "json", "value": value}
    told = {"type": "json", "value": ARGUMENTS}
    sides = {"langwatch.input": dump(told), "langwatch.output": dump(output)}
    return {"langwatch.span.type": "tool", **sides}


def _langsmith(_: str, result: str) -> dict[str, Any]:
    sides = {"gen_ai.prompt": dump(ARGUMENTS), "gen_ai.completion": result}
    return {"langsmith.span.kind": "tool", "langsmith.trace.name": NAME, **sides}


def _in_attributes(attributes: Callable[[str, str], dict[str, Any]], scope: str) -> Write:
    def write(calls: Calls) -> list[SpanSpec]:
        return [_ROOT, *(_span(n, scope, attributes(*call)) for n, call in enumerate(calls))]

    return write


def _span(number: int, scope: str, attributes: Mapping[str, Any], events: Events = ()) -> SpanSpec:
    start = 10 + 10 * number
    name = "ai.toolCall" if scope == "ai" else NAME
    name = "running tool" if scope == "pydantic-ai" else name
    return SpanSpec(
        id=10 + number,
        parent=1,
        name=name,
        scope=scope,
        attributes=attributes,
        events=events,
        start=start,
        end=start + 5,
    )


def _strands(calls: Calls) -> list[SpanSpec]:
    spans = [_ROOT]
    for number, (call, result) in enumerate(calls):
        events = (
            ("gen_ai.tool.message", {"role": "tool", "content": dump(ARGUMENTS), "id": call}),
            ("gen_ai.choice", {"message": result, "id": call}),
        )
        spans.append(_span(number, "strands.telemetry.tracer", _GENAI, events))
    return spans


def _monocle(calls: Calls) -> list[SpanSpec]:
    named = {"span.type": "agentic.tool.invocation", "entity.1.name": NAME}
    spans = [_ROOT]
    for number, (_, result) in enumerate(calls):
        events = (
            ("data.input", {"input": dump(ARGUMENTS)}),
            ("data.output", {"response": result}),
        )
        spans.append(_span(number, "monocle_apptrace", named, events))
    return spans


# --- only in the messages that a model is sent -----------------------------------------------------------------------


def _parts(call: str, result: str) -> list[Any]:
    asks = {"type": "tool_call", "id": call, "name": NAME, "arguments": ARGUMENTS}
    answer = {"type": "tool_call_response", "id": call, "response": result}
    return [{"role": "assistant", "parts": [asks]}, {"role": "tool", "parts": [answer]}]


def _chat(call: str, result: str) -> list[Any]:
    asks = {"id": call, "function": {"name": NAME, "arguments": dump(ARGUMENTS)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asks]},
        {"role": "tool", "tool_call_id": call, "content": result},
    ]


def _anthropic(call: str, result: str) -> list[Any]:
    asks = {"type": "tool_use", "id": call, "name": NAME, "input": ARGUMENTS}
    answer = {"type": "tool_result", "tool_use_id": call, "content": result}
    return [{"role": "assistant", "content": [asks]}, {"role": "user", "content": [answer]}]


def _ai_sdk(call: str, result: str) -> list[Any]:
    about = {"toolCallId": call, "toolName": NAME}
    value = _value(result)
    output = {"type": "text" if isinstance(value, str) else "json", "value": value}
    return [
        {"role": "assistant", "content": [{"type": "tool-call", **about, "input": ARGUMENTS}]},
        {"role": "tool", "content": [{"type": "tool-result", **about, "output": output}]},
    ]


def _gemini(call: str, result: str) -> list[Any]:
    asks = {"functionCall": {"name": NAME, "args": ARGUMENTS, "id": call}}
    response = as_dict(_value(result)) or {"result": result}
    answer = {"functionResponse": {"name": NAME, "id": call, "response": response}}
    return [{"role": "model", "parts": [asks]}, {"role": "user", "parts": [answer]}]


def _in_messages(
    messages: Callable[[str, str], list[Any]], attributes: Callable[[list[Any]], dict[str, Any]]
) -> Write:
    def write(calls: Calls) -> list[SpanSpec]:
        history: list[Any] = [{"role": "user", "content": _ASKED}]
        if messages is _gemini:
            history = [{"role": "user", "parts": [{"text": _ASKED}]}]
        spans = [_ROOT, _span(0, "", attributes(history))]
        for number, call in enumerate(calls, 1):
            history = [*history, *messages(*call)]
            spans.append(_span(number, "", attributes(history)))
        return spans

    return write


def _flat(prefix: str, infix: str, call: Callable[[str], dict[str, Any]]) -> Write:
    """Messages of OpenInference and of OpenLLMetry before its JSON: an attribute for each of their fields."""

    def attributes(history: list[Any]) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for number, message in enumerate(history):
            for key, value in message.items():
                at = f"{prefix}{number}.{infix}{key}"
                if key != "tool_calls":
                    flat[at] = value or ""
                    continue
                flat |= {f"{at}.0.{k}": v for k, v in call(value[0]["id"]).items()}
        return flat | {"gen_ai.operation.name": "chat", **({} if not infix else _LLM)}

    return _in_messages(_chat, attributes)


_LLM = {"openinference.span.kind": "LLM"}
_FUNCTION = {"name": NAME, "arguments": dump(ARGUMENTS)}


def _in_records(write: Write, of_span: Callable[[Any], Events]) -> Write:
    """The messages of each model call moved to log records, by the names and bodies that `of_span` makes of them."""

    def moved(calls: Calls) -> list[SpanSpec]:
        spans = [_ROOT]
        for span in write(calls)[1:]:
            spans.append(replace(span, attributes={"gen_ai.operation.name": "chat"}))
            history = of_span(span.attributes["gen_ai.input.messages"])
            spans += [
                words(100 * span.id + number, name, span.start + 1, of=span.id, body=body)
                for number, (name, body) in enumerate(history)
            ]
        return spans

    return moved


def _details(messages: str) -> Events:
    return [("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": messages})]


def _messages(messages: str) -> Events:
    return [(f"gen_ai.{each['role']}.message", each) for each in json.loads(messages)]


def _as(key: str, **more: Any) -> Callable[[list[Any]], dict[str, Any]]:
    return lambda history: {key: dump(history), **more}


_CHAT = _in_messages(_chat, _as("gen_ai.input.messages", **{"gen_ai.operation.name": "chat"}))
_PARTS = _in_messages(_parts, _as("gen_ai.input.messages", **{"gen_ai.operation.name": "chat"}))
WRITERS: dict[str, Write] = {
    "conventions": _in_attributes(_genai, ""),
    "conventions without id": _in_attributes(_nameless, ""),
    "openinference": _in_attributes(_openinference, "openinference.instrumentation.x"),
    "traceloop": _in_attributes(_traceloop, "opentelemetry.instrumentation.langchain"),
    "vercel": _in_attributes(_vercel, "ai"),
    "langfuse": _in_attributes(_langfuse, "langfuse-sdk"),
    "mlflow": _in_attributes(_mlflow, "mlflow.langchain"),
    "pydantic-ai": _in_attributes(_pydantic_ai, "pydantic-ai"),
    "adk": _in_attributes(_adk, "gcp.vertex.agent"),
    "langwatch": _in_attributes(_langwatch, "langwatch"),
    "langsmith": _in_attributes(_langsmith, ""),
    "strands": _strands,
    "monocle": _monocle,
    "parts": _PARTS,
    "chat": _CHAT,
    "parts in records": _in_records(_PARTS, _details),
    "chat in records": _in_records(_CHAT, _messages),
    "anthropic": _in_messages(
        _anthropic, _as("gen_ai.input.messages", **{"gen_ai.operation.name": "chat"})
    ),
    "langfuse's messages": _in_messages(
        _chat, _as("langfuse.observation.input", **{"langfuse.observation.type": "generation"})
    ),
    "vercel's messages": _in_messages(
        _ai_sdk, _as("ai.prompt.messages", **{"ai.operationId": "ai.generateText.doGenerate"})
    ),
    "mlflow's messages": _in_messages(
        _chat, _as("mlflow.spanInputs", **{"mlflow.spanType": '"CHAT_MODEL"'})
    ),
    "adk's messages": _in_messages(
        _gemini,
        lambda history: {
            "gcp.vertex.agent.llm_request": dump({"contents": history}),
            "gcp.vertex.agent.invocation_id": "e-1",
            "gen_ai.operation.name": "generate_content",
        },
    ),
    "openinference's messages": _flat(
        "llm.input_messages.",
        "message.",
        lambda call: {
            "tool_call.id": call,
            **{f"tool_call.function.{k}": v for k, v in _FUNCTION.items()},
        },
    ),
    "traceloop's messages": _flat("gen_ai.prompt.", "", lambda call: {"id": call, **_FUNCTION}),
}
