"""Calls of one tool as each dialect records them, to put the same result into all of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluators.dialects.decoding.values import as_dict, is_json
from tests.support.conventions import CHAT, ROOT, tool
from tests.support.dialect_spans import SpanSpec, under
from tests.support.openinference import SCOPE, of
from tests.support.weather import dump

NAME, ARGUMENTS = "count_pallets", {"bay": 4}
Calls = Sequence[tuple[str, str]]
"""The id and the recorded result of each call, in order."""
Write = Callable[[Calls], list[SpanSpec]]
Events = Sequence[tuple[str, Mapping[str, Any]]]

_ASKED = "How many pallets are in bay 4?"
_GIVEN = dump(ARGUMENTS)
_TOOL = tool(NAME)


def _value(recorded: str) -> Any:
    return json.loads(recorded) if is_json(recorded) else recorded


def _typed(value: Any) -> dict[str, Any]:
    return {"type": "text" if isinstance(value, str) else "json", "value": value}


def _traceloop(_: str, result: str) -> dict[str, Any]:
    given = {"input_str": str(ARGUMENTS), "inputs": ARGUMENTS, "kwargs": {"name": NAME}}
    sides = under("traceloop.entity.", name=NAME, input=dump(given), output=result)
    return {"traceloop.span.kind": "tool", **sides}


def _vercel(call: str, result: str) -> dict[str, Any]:
    told = under("ai.toolCall.", name=NAME, id=call, args=_GIVEN, result=result)
    return {"ai.operationId": "ai.toolCall", **told}


def _mlflow(_: str, result: str) -> dict[str, Any]:
    output = result if is_json(result) else dump(result)
    return under("mlflow.", spanType='"TOOL"', spanInputs=_GIVEN, spanOutputs=output)


def _pydantic_ai(call: str, result: str) -> dict[str, Any]:
    told = {"tool_arguments": _GIVEN, "tool_response": result}
    return {"gen_ai.tool.name": NAME, "gen_ai.tool.call.id": call, **told}


def _adk(call: str, result: str) -> dict[str, Any]:
    return tool(NAME, call) | under(
        "gcp.vertex.agent.", tool_call_args=_GIVEN, tool_response=result
    )


def _langwatch(_: str, result: str) -> dict[str, Any]:
    sides = {"input": dump(_typed(ARGUMENTS)), "output": dump(_typed(_value(result)))}
    return under("langwatch.", span__type="tool", **sides)


def _langsmith(_: str, result: str) -> dict[str, Any]:
    named = under("langsmith.", span__kind="tool", trace__name=NAME)
    return {**named, "gen_ai.prompt": _GIVEN, "gen_ai.completion": result}


def _strands(call: str, result: str) -> Events:
    given = {"role": "tool", "content": _GIVEN, "id": call}
    return ("gen_ai.tool.message", given), ("gen_ai.choice", {"message": result, "id": call})


def _monocle(_: str, result: str) -> Events:
    return ("data.input", {"input": _GIVEN}), ("data.output", {"response": result})


def _in_attributes(attributes: Callable[[str, str], dict[str, Any]], scope: str) -> Write:
    return lambda calls: [ROOT, *(_span(n, scope, attributes(*c)) for n, c in enumerate(calls))]


def _in_events(
    events: Callable[[str, str], Events], scope: str, attributes: dict[str, Any]
) -> Write:
    return lambda calls: [
        ROOT,
        *(_span(n, scope, attributes, events(*call)) for n, call in enumerate(calls)),
    ]


def _span(number: int, scope: str, attributes: Mapping[str, Any], events: Events = ()) -> SpanSpec:
    start = 10 + 10 * number
    name = {"ai": "ai.toolCall", "pydantic-ai": "running tool"}.get(scope, NAME)
    place: dict[str, Any] = {"id": 10 + number, "parent": 1, "start": start, "end": start + 5}
    return SpanSpec(name=name, scope=scope, attributes=attributes, events=events, **place)


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
    asks = {"type": "tool-call", **about, "input": ARGUMENTS}
    answer = {"type": "tool-result", **about, "output": _typed(_value(result))}
    return [{"role": "assistant", "content": [asks]}, {"role": "tool", "content": [answer]}]


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
        spans = [ROOT, _span(0, "", attributes(history))]
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
        return flat | CHAT | (of("LLM") if infix else {})

    return _in_messages(_chat, attributes)


_FUNCTION = {"name": NAME, "arguments": _GIVEN}


def _as(key: str, **more: Any) -> Callable[[list[Any]], dict[str, Any]]:
    return lambda history: {key: dump(history), **more}


WRITERS: dict[str, Write] = {
    "conventions": _in_attributes(lambda call, result: tool(NAME, call, _GIVEN, result), ""),
    "conventions without id": _in_attributes(
        lambda _, result: tool(NAME, None, _GIVEN, result), ""
    ),
    "openinference": _in_attributes(
        lambda _, result: of("TOOL", tool__name=NAME, input__value=_GIVEN, output__value=result),
        SCOPE + "x",
    ),
    "traceloop": _in_attributes(_traceloop, "opentelemetry.instrumentation.langchain"),
    "vercel": _in_attributes(_vercel, "ai"),
    "langfuse": _in_attributes(
        lambda _, result: under("langfuse.observation.", type="tool", input=_GIVEN, output=result),
        "langfuse-sdk",
    ),
    "mlflow": _in_attributes(_mlflow, "mlflow.langchain"),
    "pydantic-ai": _in_attributes(_pydantic_ai, "pydantic-ai"),
    "adk": _in_attributes(_adk, "gcp.vertex.agent"),
    "langwatch": _in_attributes(_langwatch, "langwatch"),
    "langsmith": _in_attributes(_langsmith, ""),
    "strands": _in_events(_strands, "strands.telemetry.tracer", _TOOL),
    "monocle": _in_events(
        _monocle,
        "monocle_apptrace",
        {"span.type": "agentic.tool.invocation", "entity.1.name": NAME},
    ),
    "parts": _in_messages(_parts, _as("gen_ai.input.messages", **CHAT)),
    "chat": _in_messages(_chat, _as("gen_ai.input.messages", **CHAT)),
    "anthropic": _in_messages(_anthropic, _as("gen_ai.input.messages", **CHAT)),
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
