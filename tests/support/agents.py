"""A scripted agent as OTLP requests, the same in every run: turns of model and tool calls (OTel GenAI keys)."""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.dialect_spans import key_values

START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
TOOL = {
    "type": "function",
    "name": "lookup",
    "description": "Look an order up",
    "parameters": {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One trace: what it is about and how badly it goes."""

    service: str
    session: str
    number: int
    loops: bool = False
    fails: bool = False
    calls: int | None = None
    """Tool calls, all the same; None: three when it loops, else one."""


def ident(length: int, *parts: object) -> bytes:
    """An id that is the same in every run."""
    return hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:length]


def trace_id(turn: Turn) -> bytes:
    """The trace id of a turn."""
    return ident(16, "trace", turn.service, turn.session, turn.number)


def spans(turn: Turn) -> list[Span]:
    """The spans of a turn in the order in which they end: the root last."""
    trace = trace_id(turn)
    root = ident(8, trace, "root")
    question = f"Where is order {turn.number} of {turn.session}?"
    asked = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    arguments = {"order": str(turn.number)}
    made: list[Span] = []

    def add(name: str, at: int, length: int, attributes: dict[str, object]) -> Span:
        is_root = name.startswith("invoke_agent")
        start = START + turn.number * 60 * SECOND + at
        span = Span(
            trace_id=trace,
            span_id=root if is_root else ident(8, trace, len(made)),
            parent_span_id=b"" if is_root else root,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start,
            end_time_unix_nano=start + length,
        )
        span.attributes.extend(key_values({**attributes, "session.id": turn.session}))
        made.append(span)
        return span

    def model(call: int, part: dict[str, object]) -> None:
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.id": f"{turn.session}-{turn.number}-{call}",
            "gen_ai.input.messages": json.dumps(asked),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}]),
            "gen_ai.tool.definitions": json.dumps([TOOL]),
            "gen_ai.usage.input_tokens": 100 + call,
            "gen_ai.usage.output_tokens": 20,
        }
        add("chat gpt-4o-mini", call * SECOND, 400_000_000, attributes)

    calls = turn.calls or (3 if turn.loops else 1)
    for call in range(calls):
        called = f"call-{turn.number}-{call}"
        asks: dict[str, object] = {
            "type": "tool_call",
            "id": called,
            "name": "lookup",
            "arguments": arguments,
        }
        model(call, asks)
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "lookup",
            "gen_ai.tool.call.id": called,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": "" if turn.fails else '{"state": "shipped"}',
        }
        tool = add("execute_tool lookup", call * SECOND + 500_000_000, 100_000_000, attributes)
        if turn.fails:
            tool.status.code = Status.STATUS_CODE_ERROR
            tool.status.message = "TimeoutError: backend timed out"
    said = f"Order {turn.number} of {turn.session} has shipped."
    model(calls, {"type": "text", "content": "I am still looking into it." if turn.loops else said})
    agent: dict[str, object] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
    }
    add("invoke_agent support", 0, (calls + 1) * SECOND, agent)
    return made


def request(service: str, group: list[Span]) -> bytes:
    """An export request of one service."""
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    scope = resource.scope_spans.add()
    scope.scope.name = "scripted"
    scope.spans.extend(group)
    return made.SerializeToString()


def requests(turns: list[Turn], *, batch: int = 5, seed: int = 7) -> Iterator[bytes]:
    """The turns' spans as several exporters would send them: interleaved, in order within a trace."""
    shuffle = random.Random(seed)
    queues = [(turn.service, spans(turn)) for turn in turns]
    waiting: dict[str, list[Span]] = {}
    while queues:
        at = shuffle.randrange(min(4, len(queues)))
        service, left = queues[at]
        group = waiting.setdefault(service, [])
        group.append(left.pop(0))
        if not left:
            queues.pop(at)
        if len(group) >= batch:
            yield request(service, group)
            group.clear()
    for service, group in waiting.items():
        if group:
            yield request(service, group)
