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
    return _Conversation(turn).made


class _Conversation:
    """The spans of one turn while they are made."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.trace = trace_id(turn)
        self.root = ident(8, self.trace, "root")
        self.made: list[Span] = []
        calls = turn.calls or (3 if turn.loops else 1)
        for call in range(calls):
            self._model_asks_for_tool(call)
            self._tool(call)
        self._model_answers(calls)
        self._add(
            "invoke_agent support",
            0,
            (calls + 1) * 1_000_000_000,
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"},
        )

    def _model_asks_for_tool(self, call: int) -> None:
        self._model(
            call,
            {
                "type": "tool_call",
                "id": f"call-{self.turn.number}-{call}",
                "name": "lookup",
                "arguments": {"order": str(self.turn.number)},
            },
        )

    def _model_answers(self, call: int) -> None:
        text = (
            "I am still looking into it."
            if self.turn.loops
            else f"Order {self.turn.number} of {self.turn.session} has shipped."
        )
        self._model(call, {"type": "text", "content": text})

    def _model(self, call: int, part: dict[str, object]) -> None:
        question = f"Where is order {self.turn.number} of {self.turn.session}?"
        asked = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
        self._add(
            "chat gpt-4o-mini",
            call * 1_000_000_000,
            400_000_000,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-4o-mini",
                "gen_ai.response.id": f"{self.turn.session}-{self.turn.number}-{call}",
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}]),
                "gen_ai.tool.definitions": json.dumps([TOOL]),
                "gen_ai.usage.input_tokens": 100 + call,
                "gen_ai.usage.output_tokens": 20,
            },
        )

    def _tool(self, call: int) -> None:
        span = self._add(
            "execute_tool lookup",
            call * 1_000_000_000 + 500_000_000,
            100_000_000,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "lookup",
                "gen_ai.tool.call.id": f"call-{self.turn.number}-{call}",
                "gen_ai.tool.call.arguments": json.dumps({"order": str(self.turn.number)}),
                "gen_ai.tool.call.result": "" if self.turn.fails else '{"state": "shipped"}',
            },
        )
        if self.turn.fails:
            span.status.code = Status.STATUS_CODE_ERROR
            span.status.message = "TimeoutError: backend timed out"

    def _add(self, name: str, at: int, length: int, attributes: dict[str, object]) -> Span:
        is_root = name.startswith("invoke_agent")
        start = START + self.turn.number * 60_000_000_000 + at
        span = Span(
            trace_id=self.trace,
            span_id=self.root if is_root else ident(8, self.trace, len(self.made)),
            parent_span_id=b"" if is_root else self.root,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start,
            end_time_unix_nano=start + length,
        )
        span.attributes.extend(key_values({**attributes, "session.id": self.turn.session}))
        self.made.append(span)
        return span


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
