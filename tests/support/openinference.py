"""Spans as OpenInference writes them."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec
from tests.support.weather import dump

SCOPE = "openinference.instrumentation."


def flat(side: str, *messages: dict[str, Any]) -> dict[str, Any]:
    return {
        f"llm.{side}_messages.{n}.message.{key}": value
        for n, message in enumerate(messages)
        for key, value in message.items()
    }


def asked(*cities: str, ids: tuple[str, ...] = ()) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    for n, city in enumerate(cities):
        call = f"tool_calls.{n}.tool_call."
        message[f"{call}function.name"] = "get_weather"
        message[f"{call}function.arguments"] = dump({"city": city})
        if ids:
            message[f"{call}id"] = ids[n]
    return message


def llm(number: int, library: str, *parts: dict[str, Any], **more: Any) -> SpanSpec:
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM", **more}
    for part in parts:
        attributes |= part
    return SpanSpec(
        id=number + 1,
        parent=1,
        name="call",
        scope=SCOPE + library,
        attributes=attributes,
        start=number * 10,
        end=number * 10 + 5,
    )


def chain(library: str, name: str = "run", **attributes: Any) -> SpanSpec:
    kind = {"openinference.span.kind": "CHAIN"}
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    return SpanSpec(id=1, name=name, scope=SCOPE + library, attributes=kind | given, end=99)


def calls(trace: Trace) -> list[tuple[str, Any, Any, bool]]:
    return [(c.name, c.arguments, c.result, c.error is not None) for c in trace.tool_calls]
