"""What is scored while more is offered than can be: spans a second at twice the load that saturates / at that load.

Each request is a whole trace, and a refused one is not sent again: what is scored is what was taken.
"""

import pickle
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.split import split_by_trace
from tests.bench.load import Request, requests
from tests.bench.measure import MEMORY_SHARE, prepared, served
from tests.support.otlp import spans_of
from tests.support.service import ROOT, Service

TRACES = 150
PASSES = 8
"""Of the burst that shows what the service can do."""
OFFERED = 32.0
"""Seconds of load at twice that."""
WARM = 8.0
"""Of these, seconds before anything is counted: by then the lag has reached its limit."""
SETTINGS = (
    MEMORY_SHARE,
    "windows.trace.root_grace=200ms",
    "receiver.max_score_lag=5s",
    "sinks.jsonl=null",
)
EVALUATOR = 'evaluator="step_efficiency"'
"""Scores every trace."""


def goodput_ratio() -> tuple[float, float]:
    """Scored at twice the saturating load / at that load; and that load in spans a second. Bounded: 90 s."""
    file, spans = _load()
    with served(*SETTINGS) as service:
        saturating = _capacity(service, file)
    with served(*SETTINGS) as service:
        return _scored_rate(service, file, 2 * saturating * spans) / saturating, saturating * spans


def _capacity(service: Service, file: Path) -> float:
    """Traces a second of a burst, from its first request until the last trace is scored; refused ones come again."""
    with _sending(service, file, "--requests", "20", "--base", "9000"):
        service.come_to(20, lambda: _scored(service), 40)
    began = time.monotonic()
    with _sending(service, file, "--passes", str(PASSES)):
        scored = service.come_to(20 + PASSES * TRACES, lambda: _scored(service), 40) - 20
        return scored / (time.monotonic() - began)


def _scored_rate(service: Service, file: Path, rate: float) -> float:
    options = ("--passes", "900", "--inflight", "64", "--rate", str(rate), "--drop")
    with _sending(service, file, *options):
        time.sleep(WARM)
        before, began = _scored(service), time.monotonic()
        time.sleep(OFFERED - WARM)
        return (_scored(service) - before) / (time.monotonic() - began)


def _scored(service: Service) -> float:
    return service.total("spanwise_evaluations_total", EVALUATOR)


@contextmanager
def _sending(service: Service, file: Path, *options: str) -> Generator[None]:
    """The client sends meanwhile."""
    command = [sys.executable, "-m", "tests.bench.client", service.grpc, str(file), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as sending:
        try:
            yield
        finally:
            sending.kill()


def _load() -> tuple[Path, float]:
    """Requests of one trace each, and how many spans one has."""
    file = prepared(f"whole-{TRACES}.pickle", _whole_traces)
    made: list[Request] = pickle.loads(file.read_bytes())
    return file, sum(each.spans for each in made) / len(made)


def _whole_traces() -> list[Request]:
    pieces = [
        piece.value
        for request in requests(TRACES, 100_000)
        for piece in split_by_trace(request.body, max_item=1 << 30).pieces
    ]
    read = ExportTraceServiceRequest.FromString
    return [Request(each, len(spans_of(read(each)))) for each in pieces]
