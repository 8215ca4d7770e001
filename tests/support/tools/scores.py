"""Signals on their way into a tool, and the promise that all of them arrive."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.log.port import SIGNALS, Position, Record
from collector.records.signal import Signal
from collector.records.signal_batch import Published, signals_in
from tests.support.recordings import requests
from tests.support.sender import send
from tests.support.server_program import ask
from tests.support.service import ROOT, Service
from tests.support.signals import BASE, encode, headers

CAPTURES = ROOT / "tests" / "data" / "captures"
RECORDINGS = (
    *sorted((CAPTURES / "langgraph_oi").glob("*.otlp")),
    CAPTURES / "google_adk" / "loop.otlp",
)
Scores = Mapping[tuple[str, str], Sequence[float | None]]
"""By subject's id and evaluator: one score, unless something is wrong."""


def published_signals(*signals: Signal) -> list[Published]:
    """As a sink gets them, from offset 0 on."""
    records = [
        Record(
            position=Position(SIGNALS, 0, offset),
            key=each.session_id.encode(),
            value=encode(each),
            time=BASE,
            headers=headers(each),
        )
        for offset, each in enumerate(signals)
    ]
    return [published for record in records for published in signals_in(record)]


def spans_of(traces: Iterable[tuple[str, str]]) -> bytes:
    """A span of each (trace id, session id), as an export request."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for trace_id, session_id in traces:
        span = spans.add(
            trace_id=bytes.fromhex(trace_id),
            span_id=bytes.fromhex(trace_id[:16]),
            name="answer",
            start_time_unix_nano=1_760_000_000_000_000_000,
            end_time_unix_nano=1_760_000_001_000_000_000,
        )
        span.attributes.add(key="session.id").value.string_value = session_id
    return request.SerializeToString()


def scores_survive_a_kill(
    data: Path,
    *,
    settings: Sequence[str],
    give_traces: Callable[[Iterable[bytes]], None],
    found: Callable[[], Scores],
    sessions: Collection[str],
    ends: Mapping[str, str] | None = None,
) -> None:
    """Recordings are scored before the tool has their traces; a kill -9; then it gets them, and all is sent again.

    Args:
        data: The service's folder.
        settings: What switches the sink on.
        give_traces: Sends spans to the tool.
        found: What the tool shows.
        sessions: The session sources that the tool knows as its own sessions.
        ends: By session source, the trace on which it shows scores of those sessions; by default the newest.
    """
    spans = [each for recording in RECORDINGS for each in requests(recording)]
    service = Service(
        data,
        *settings,
        "windows.trace.root_grace=300ms",
        "windows.trace.idle=2s",
        "windows.session.idle=2s",
    )
    with service:
        send(service.grpc, *spans)
        first = ExportTraceServiceRequest.FromString(spans[0]).resource_spans[0].scope_spans[0]
        score = {"trace_id": first.spans[0].trace_id.hex(), "name": "tone", "value": 0.5}
        ask("POST", service.http.replace("traces", "evaluations"), json.dumps(score).encode())
        service.wait_for(
            "a score of others is one of them",
            lambda: any(each["method"] == "external" for each in service.signals()),
        )
        service.wait_for("every session has closed", lambda: _closed(service) >= 5)
        service.kill()
    give_traces(spans)
    with service:
        send(service.grpc, *spans)

        def is_complete() -> bool:
            expected = _expected(service.signals(), sessions, ends or {})
            return found() == {place: [score] for place, score in expected.items()}

        service.wait_for("the tool shows every score once", is_complete, 90)
        time.sleep(1)  # what came again would come twice now
        assert is_complete()
        assert service.signals()
    assert _closed(service) >= 5


def otlp(url: str, more: Mapping[str, str] | None = None) -> Callable[[Iterable[bytes]], None]:
    """Sends export requests to an address of a tool."""

    def give(spans: Iterable[bytes]) -> None:
        for each in spans:
            ask("POST", url, each, headers=more)

    return give


def _closed(service: Service) -> int:
    return len(
        {
            each["session_id"]
            for each in service.signals()
            if each["scope"] == "session" and each["final"]
        }
    )


def _expected(
    signals: Iterable[dict[str, Any]], sessions: Collection[str], ends: Mapping[str, str]
) -> dict[tuple[str, str], float]:
    newest: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in signals:
        key = (each["scope"], each["trace_id"] or each["session_id"], each["evaluator"])
        if each["final"] and each["revision"] >= newest.get(key, each)["revision"]:
            newest[key] = each
    expected: dict[tuple[str, str], float] = {}
    for each in newest.values():
        if each["outcome"] == "scored":
            source = each["session_source"]
            own = each["trace_id"] or (
                each["session_id"]
                if source in sessions
                else each["traces"][ends.get(source, "newest")]
            )
            expected[own, each["evaluator"]] = each["score"]
    return expected
