"""Deterministic requests with the weight of real agents' spans: 4 KB on average, model spans 5 to 19 KB.

Every trace id begins with TRACE_MARK and every session id ends with SESSION_MARK, so that a client can make a pass of
new traces and sessions by replacing these bytes.
"""

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from evaluators.model import JSON
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


def _texts(seed: int) -> Callable[[int], str]:
    """Makes texts of about so many characters, of words with the distribution of words."""
    draw = random.Random(seed)
    syllables = ("ta", "re", "mi", "on", "qua", "der", "lo", "ship", "ing", "or", "pri", "ce")
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(4000)]
    # Accumulated once: with plain weights, `choices` adds up all 4,000 of them for every text.
    up_to = [*itertools.accumulate(1.0 / (rank + 3) for rank in range(4000))]

    def text(length: int) -> str:
        count = max(1, length // 7)
        return " ".join(draw.choices(words, cum_weights=up_to, k=count))[:length]

    return text


def _trace(
    draw: random.Random, text: Callable[[int], str], number: int, session: str, *, matching: bool
) -> list[Span]:
    """The spans of one trace, in the order in which they end; the root is the last."""
    trace_id = TRACE_MARK + draw.getrandbits(96).to_bytes(12, "big")
    root = draw.getrandbits(64).to_bytes(8, "big")
    at = START + number * 350_000_000
    spans: list[Span] = []
    question = text(draw.randint(80, 400))
    history: list[JSON] = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    system = {"role": "system", "parts": [{"type": "text", "content": "Be helpful. " * 150}]}

    def add(name: str, attributes: dict[str, object], *, is_root: bool = False) -> None:
        nonlocal at
        length = draw.randint(1_000_000, 400_000_000)
        span = Span(
            trace_id=trace_id,
            span_id=root if is_root else draw.getrandbits(64).to_bytes(8, "big"),
            parent_span_id=b"" if is_root else root,
            name=name,
            kind=Span.SPAN_KIND_INTERNAL,
            flags=0x101,
            start_time_unix_nano=at,
            end_time_unix_nano=at + length,
        )
        at += length
        ours = {"session.id": session, "user.id": "u-1"}
        span.attributes.extend(key_values(ours | attributes))
        spans.append(span)

    def model(call: str | None) -> None:
        answer: list[JSON] = [{"type": "text", "content": text(draw.randint(150, 1200))}]
        if call is not None:
            given: JSON = {"query": text(60), "limit": draw.randint(1, 50)}
            answer.append({"type": "tool_call", "id": call, "name": "search", "arguments": given})
        output: JSON = {"role": "assistant", "parts": answer, "finish_reason": "stop"}
        add(
            "chat gpt-4o-mini",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-4o-mini",
                "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
                "gen_ai.response.id": f"chatcmpl-{draw.getrandbits(96):024x}",
                "gen_ai.request.temperature": 0.2,
                "gen_ai.request.max_tokens": 4096,
                "gen_ai.usage.input_tokens": draw.randint(400, 4000),
                "gen_ai.usage.output_tokens": draw.randint(20, 400),
                "server.address": "api.llm.internal",
                "server.port": 443,
                "gen_ai.input.messages": json.dumps([system, *history]),
                "gen_ai.output.messages": json.dumps([output]),
                **{f"app.attribute.{n}": text(12) for n in range(20)},
            },
        )
        history.append(output)
        result: JSON = {"type": "tool_call_response", "id": call, "response": text(900)}
        history.append({"role": "tool", "parts": [result]})
        if not matching and len(history) > 4 and draw.random() < 0.4:
            del history[draw.randrange(1, len(history) - 1)]

    for step in range(draw.randint(3, 9)):
        call = f"call_{draw.getrandbits(64):016x}"
        model(call)
        if not matching:
            call = f"run_{draw.getrandbits(64):016x}"
        rows = [text(draw.randint(60, 260)) for _ in range(3)]
        tool: dict[str, object] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.call.arguments": json.dumps({"query": text(120), "limit": 5}),
            "gen_ai.tool.call.result": json.dumps({"rows": rows}),
        }
        add("execute_tool search", tool)
        add(f"step.{step}", {"app.note": text(600), "code.function": "run_step"})
    model(None)
    add("invoke_agent planner", {"gen_ai.operation.name": "invoke_agent"}, is_root=True)
    return spans


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
    draw, text = random.Random(seed), _texts(seed + 1)
    arriving: list[tuple[int, int, Span]] = []
    for number in range(traces):
        session = f"s-{number // (TURNS * 4)}-{number % 4}-{SESSION_MARK.decode()}"
        made = _trace(draw, text, number, session, matching=matching)
        arriving += [(span.end_time_unix_nano, number % SERVICES, span) for span in made]
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
