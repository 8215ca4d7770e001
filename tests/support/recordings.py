"""Recordings on disk (`.otlp`, `.otlp.gz`) without the collector: framed requests, and the traces in them."""

import gzip
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluators.dialects.read import read_trace
from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, request
from tests.support.otlp import spans_of


def recordings(path: Path) -> list[Path]:
    """The recordings in a file or folder (with subfolders), `*.logs.otlp` left out."""
    if path.is_file():
        return [path]
    found = [*path.rglob("*.otlp"), *path.rglob("*.otlp.gz")]
    return sorted(p for p in found if ".logs.otlp" not in p.name)


def record_tools(path: Path, sessions: Iterable[Mapping[str, bool]], first: int = 0) -> Path:
    """A recording of sessions of one turn, from `s-<first>` on: the tools that each used, and which failed."""
    with path.open("wb") as file:
        for number, tools in enumerate(sessions, first):
            root = {"gen_ai.operation.name": "invoke_agent", "session.id": f"s-{number}"}
            sent = request(
                SpanSpec(id=1, attributes=root),
                *(
                    SpanSpec(
                        id=at,
                        parent=1,
                        attributes={
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": tool,
                        },
                        status=2 if fails else 0,
                    )
                    for at, (tool, fails) in enumerate(tools.items(), 2)
                ),
                trace_id=f"{number + 1:032x}",
            )
            file.write(struct.pack(">I", len(sent)) + sent)
    return path


def requests(path: Path) -> Iterator[bytes]:
    """The requests of one recording: 4-byte big-endian length, then the message, repeated."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while head := file.read(4):
            (size,) = struct.unpack(">I", head)
            yield file.read(size)


def write(path: Path, requests: Iterable[bytes]) -> None:
    """A recording of these."""
    path.write_bytes(b"".join(struct.pack(">I", len(each)) + each for each in requests))


def trace_ids(request: bytes) -> set[str]:
    """The ids of all traces that have spans in a request."""
    message = ExportTraceServiceRequest.FromString(request)
    return {span.trace_id.hex() for span in spans_of(message)}


def pieces(path: Path) -> dict[str, list[bytes]]:
    """Trace id -> the requests that hold its spans, in order of arrival."""
    found: dict[str, list[bytes]] = {}
    for each in requests(path):
        for trace_id in sorted(trace_ids(each)):
            found.setdefault(trace_id, []).append(each)
    return found


def traces(path: Path) -> Iterator[Trace]:
    """Every trace of a recording or of a folder of them, read as `spanwise inspect` would."""
    for recording in recordings(path):
        for trace_id, parts in pieces(recording).items():
            trace = read_trace(parts, trace_id=trace_id, closed="root_ended")
            if trace.root == "missing":
                trace = read_trace(parts, trace_id=trace_id, closed="idle")
            yield trace
