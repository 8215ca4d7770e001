"""Records of `traces` and `signals` as the rooms before would write them."""

from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from collector.log.port import SIGNALS, TRACES, Position, Record
from collector.records.codec import encode
from collector.records.signal import Coverage, Signal, rfc3339
from collector.records.traces import SessionRecord, TraceRecord
from evaluators.model import ToolCall, Trace
from tests.support.dialect_spans import key_values

START = 1_700_000_000.0


def trace(number: int = 1, **changes: Any) -> Trace:
    """A trace of service `support-bot`; `number` sets its id and start."""
    at = int((START + number) * 1e9)
    fields: dict[str, Any] = {
        "trace_id": f"{number:032x}",
        "service": "support-bot",
        "agent": "planner",
        "agent_version": "1.4.2",
        "session_id": "s-1",
        "session_source": "session.id",
        "input": f"question {number}",
        "output": f"answer {number}",
        "spans": 2,
        "root": "parentless",
        "root_span_id": f"{number:015x}1",
        "start_time_unix_nano": at,
        "end_time_unix_nano": at + 1_500_000_000,
        "tool_calls": (
            ToolCall(
                name="lookup",
                id="c1",
                arguments={"city": "Oslo"},
                result="rain",
                span_id=f"{number:015x}2",
            ),
        ),
    }
    return Trace(**{**fields, **changes})


def pieces(of: Trace) -> tuple[bytes, ...]:
    """Raw spans: a root and a tool call under it."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(key_values({"service.name": of.service}))
    scope = resource.scope_spans.add()
    scope.scope.name = "test.instrumentation"
    start = of.start_time_unix_nano
    for at, (name, parent) in enumerate((("invoke_agent", 0), ("execute_tool lookup", 1))):
        span = ProtoSpan(
            trace_id=bytes.fromhex(of.trace_id),
            span_id=bytes.fromhex(f"{of.trace_id[-15:]}{at + 1}"),
            name=name,
            kind=ProtoSpan.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start + at * 200_000_000,
            end_time_unix_nano=start + 1_500_000_000 - at * 300_000_000,
        )
        if parent:
            span.parent_span_id = bytes.fromhex(f"{of.trace_id[-15:]}1")
        told = {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.result": "rain <b>soon</b>"}
        span.attributes.extend(key_values(told))
        scope.spans.append(span)
    return (request.SerializeToString(),)


def trace_value(of: Trace, *, revision: int = 0, seen: float | None = None) -> bytes:
    """A record of `traces`, kind `trace`."""
    at = of.end_time_unix_nano / 1e9 if seen is None else seen
    return encode(TraceRecord(trace=of, spans=pieces(of), revision=revision, seen=at))


def closing_value(session_id: str = "s-1", service: str = "support-bot") -> bytes:
    """A record of `traces`, kind `session`."""
    return encode(SessionRecord(service=service, session_id=session_id, closed="idle", traces=(0,)))


def signal(of: Trace, evaluator: str = "step_efficiency", **changes: Any) -> Signal:
    """A scored trace signal."""
    fields: dict[str, Any] = {
        "id": f"{abs(hash((of.trace_id, evaluator))):032x}"[:32],
        "time": rfc3339(of.end_time_unix_nano / 1e9),
        "scope": "trace",
        "service": of.service,
        "agent": of.agent,
        "agent_version": of.agent_version,
        "trace_id": of.trace_id,
        "span_id": of.root_span_id,
        "session_id": of.session_id,
        "session_source": of.session_source,
        "evaluator": evaluator,
        "evaluator_version": "1",
        "method": "deterministic",
        "outcome": "scored",
        "score": 0.75,
        "threshold": 0.5,
        "success": True,
        "explanation": "1 of 4 steps repeated an earlier one",
        "metadata": {"repeated": 1, "note": "secret text"},
    }
    return Signal(**{**fields, **changes})


def session_signal(of: Trace, evaluator: str, score: float | None, **changes: Any) -> Signal:
    """A signal of the trace's session."""
    fields: dict[str, Any] = {
        "scope": "session",
        "trace_id": None,
        "span_id": None,
        "method": "formula",
        "score": score,
        "outcome": "scored" if score is not None else "not_applicable",
        "success": None if score is None else score >= 0.5,
        "final": False,
        "coverage": Coverage(expected=4, present=3),
    }
    return signal(of, evaluator, **{**fields, **changes})


def value(of: Signal) -> bytes:
    """A record of `signals`."""
    return msgspec.json.encode(of)


def records(topic: str, values: list[bytes], *, first: int = 0) -> list[Record]:
    """These values as they would be read."""
    return [
        Record(position=Position(topic, 0, first + at), key=b"", value=each, time=START)
        for at, each in enumerate(values)
    ]


def trace_records(*values: bytes, first: int = 0) -> list[Record]:
    """Of topic `traces`."""
    return records(TRACES, list(values), first=first)


def signal_records(*signals: Signal, first: int = 0) -> list[Record]:
    """Of topic `signals`."""
    return records(SIGNALS, [value(each) for each in signals], first=first)
