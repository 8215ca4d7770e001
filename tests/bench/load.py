"""Deterministic requests with the weight of real agents' spans: 4 KB on average, model spans 5 to 19 KB.

Every trace id begins with TRACE_MARK and every session id ends with SESSION_MARK, so that a client can make a pass of
new traces and sessions by replacing these bytes.
"""

import itertools
import json
import random
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.dialect_spans import key_values

TRACE_MARK = b"\xa9\xb8\xc7\xd6"
SESSION_MARK = b"f00dcafe"
START = 1_790_000_000_000_000_000
SERVICES = 4
TURNS = 5


@dataclass(frozen=True, slots=True)
class Request:
    """One export request and how many spans it holds."""

    body: bytes
    spans: int


class _Text:
    """Words with the distribution of words."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        syllables = ("ta", "re", "mi", "on", "qua", "der", "lo", "ship", "ing", "or", "pri", "ce")
        self._words = [
            "".join(self._random.choices(syllables, k=self._random.randint(1, 4)))
            for _ in range(4000)
        ]
        # Accumulated once: with plain weights, `choices` adds up all 4,000 of them for every text.
        self._up_to = [*itertools.accumulate(1.0 / (rank + 3) for rank in range(4000))]

    def of(self, length: int) -> str:
        """About `length` characters."""
        count = max(1, length // 7)
        return " ".join(self._random.choices(self._words, cum_weights=self._up_to, k=count))[
            :length
        ]


class _Trace:
    """The spans of one trace, in the order in which they end; the root is the last."""

    def __init__(
        self, draw: random.Random, text: _Text, number: int, session: str, *, matching: bool
    ) -> None:
        self._draw = draw
        self._text = text
        self._session = session
        self._matching = matching
        self.id = TRACE_MARK + draw.getrandbits(96).to_bytes(12, "big")
        self._root = draw.getrandbits(64).to_bytes(8, "big")
        self._at = START + number * 350_000_000
        self.spans: list[Span] = []
        question = text.of(draw.randint(80, 400))
        history: list[dict[str, object]] = [
            {"role": "user", "parts": [{"type": "text", "content": question}]}
        ]
        for step in range(draw.randint(3, 9)):
            call = f"call_{draw.getrandbits(64):016x}"
            self._model(history, call)
            self._tool(call)
            self._plain(f"step.{step}", 600)
        self._model(history, None)
        self._span("invoke_agent planner", {"gen_ai.operation.name": "invoke_agent"}, root=True)

    def _model(self, history: list[dict[str, object]], call: str | None) -> None:
        answer: list[dict[str, object]] = [
            {"type": "text", "content": self._text.of(self._draw.randint(150, 1200))}
        ]
        if call is not None:
            arguments = {"query": self._text.of(60), "limit": self._draw.randint(1, 50)}
            answer.append(
                {"type": "tool_call", "id": call, "name": "search", "arguments": arguments}
            )
        output: dict[str, object] = {"role": "assistant", "parts": answer, "finish_reason": "stop"}
        system = {"role": "system", "parts": [{"type": "text", "content": "Be helpful. " * 150}]}
        self._span(
            "chat gpt-4o-mini",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-4o-mini",
                "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
                "gen_ai.response.id": f"chatcmpl-{self._draw.getrandbits(96):024x}",
                "gen_ai.request.temperature": 0.2,
                "gen_ai.request.max_tokens": 4096,
                "gen_ai.usage.input_tokens": self._draw.randint(400, 4000),
                "gen_ai.usage.output_tokens": self._draw.randint(20, 400),
                "server.address": "api.llm.internal",
                "server.port": 443,
                "gen_ai.input.messages": json.dumps([system, *history]),
                "gen_ai.output.messages": json.dumps([output]),
                **{f"app.attribute.{n}": self._text.of(12) for n in range(20)},
            },
        )
        history.append(output)
        result: dict[str, object] = {
            "type": "tool_call_response",
            "id": call,
            "response": self._text.of(900),
        }
        history.append({"role": "tool", "parts": [result]})
        if not self._matching and len(history) > 4 and self._draw.random() < 0.4:
            del history[self._draw.randrange(1, len(history) - 1)]

    def _tool(self, call: str) -> None:
        if not self._matching:
            call = f"run_{self._draw.getrandbits(64):016x}"
        result = {"rows": [self._text.of(self._draw.randint(60, 260)) for _ in range(3)]}
        self._span(
            "execute_tool search",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.id": call,
                "gen_ai.tool.call.arguments": json.dumps({"query": self._text.of(120), "limit": 5}),
                "gen_ai.tool.call.result": json.dumps(result),
            },
        )

    def _plain(self, name: str, size: int) -> None:
        self._span(name, {"app.note": self._text.of(size), "code.function": "run_step"})

    def _span(self, name: str, attributes: dict[str, object], *, root: bool = False) -> None:
        length = self._draw.randint(1_000_000, 400_000_000)
        span = Span(
            trace_id=self.id,
            span_id=self._root if root else self._draw.getrandbits(64).to_bytes(8, "big"),
            parent_span_id=b"" if root else self._root,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            flags=0x101,
            start_time_unix_nano=self._at,
            end_time_unix_nano=self._at + length,
        )
        self._at += length
        ours = {"session.id": self._session, "user.id": "u-1"}
        span.attributes.extend(key_values(ours | attributes))
        self.spans.append(span)


def requests(traces: int, batch: int, seed: int = 7, *, matching: bool = True) -> list[Request]:
    """`traces` traces of sessions of five, interleaved by end time, one exporter per service.

    Args:
        traces: How many.
        batch: Spans of one request.
        seed: Equal seeds make equal requests.
        matching: Whether a tool's span carries the id under which the model asked for it. Without, results have to be
            looked for in the histories, and four of ten histories drop one of their messages, as agents do that keep
            within a model's limit.
    """
    draw, text = random.Random(seed), _Text(seed + 1)
    arriving: list[tuple[int, int, Span]] = []
    for number in range(traces):
        session = f"s-{number // (TURNS * 4)}-{number % 4}-{SESSION_MARK.decode()}"
        made = _Trace(draw, text, number, session, matching=matching)
        arriving += [(span.end_time_unix_nano, number % 4 % SERVICES, span) for span in made.spans]
    arriving.sort(key=lambda each: each[0])
    waiting: list[list[Span]] = [[] for _ in range(SERVICES)]
    made_requests: list[Request] = []
    for _, service, span in arriving:
        waiting[service].append(span)
        if len(waiting[service]) == batch:
            made_requests.append(_request(service, waiting[service]))
            waiting[service] = []
    return made_requests + [_request(n, left) for n, left in enumerate(waiting) if left]


def _request(service: int, spans: list[Span]) -> Request:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    about = {
        "service.name": f"agent-{service}",
        "service.version": "1.4.2",
        "telemetry.sdk.language": "python",
        "host.name": f"pod-{service}-7f9c",
    }
    resource.resource.attributes.extend(key_values(about))
    scope = resource.scope_spans.add()
    scope.scope.name = "bench"
    scope.spans.extend(spans)
    return Request(request.SerializeToString(), len(spans))
