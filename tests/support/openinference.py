"""Spans as OpenInference writes them."""

from collections.abc import Sequence
from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, dotted
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


def of(kind: str, **attributes: Any) -> dict[str, Any]:
    """Attributes of a span of this kind; `a__b` stands for `a.b`."""
    return {"openinference.span.kind": kind, **dotted(**attributes)}


def llm(number: int, library: str, *parts: dict[str, Any], **more: Any) -> SpanSpec:
    attributes = of("LLM", **more)
    for part in parts:
        attributes |= part
    start, end = number * 10, number * 10 + 5
    scope = SCOPE + library
    return SpanSpec(
        id=number + 1,
        parent=1,
        name="call",
        scope=scope,
        attributes=attributes,
        start=start,
        end=end,
    )


def exchange(
    number: int, library: str, sent: Sequence[dict[str, Any]], said: dict[str, Any], **more: Any
) -> SpanSpec:
    """A model's call with the messages that it was sent and its answer, both flattened."""
    return llm(number, library, flat("input", *sent), flat("output", said), **more)


def chain(library: str, name: str = "run", **attributes: Any) -> SpanSpec:
    given = of("CHAIN", **attributes)
    return SpanSpec(id=1, name=name, scope=SCOPE + library, attributes=given, end=99)


def calls(trace: Trace) -> list[tuple[str, Any, Any, bool]]:
    return [(c.name, c.arguments, c.result, c.error is not None) for c in trace.tool_calls]
