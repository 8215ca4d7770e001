"""What the doctor looks at when it is given recordings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.config.tree import Config
from collector.doctor.seen import SESSION_KEYS, Seen, see
from collector.offline import recordings
from collector.offline.evaluate import read_recordings
from collector.offline.recordings import Recordings
from collector.otlp import display
from evaluators.dialects.show import show


def seen_in(config: Config, found: Recordings) -> list[Seen]:
    """Every trace of the recordings. The logs signal is only asked which traces have their content there.

    Raises:
        ConfigError: a file cannot be read.
    """
    read = asyncio.run(read_recordings(config, found.files, lambda _: None))
    by_trace: dict[str, list[Mapping[str, Any]]] = {}
    for span in _spans(found.files):
        by_trace.setdefault(span["traceId"], []).append(_slim(span))
    in_logs = _traces_with_content(found.left_out)
    return [
        see(show(t), by_trace.get(t.trace_id, ()), content_in_logs=t.trace_id in in_logs)
        for t in read.traces
    ]


def _spans(files: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    for file in files:
        for request in recordings.requests(file):
            yield from display.decode([request], content=True)


def _slim(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without what was said: recordings can be large."""
    kept = ("scope", "scopeVersion", "resource", "droppedAttributesCount")
    attributes = {k: v for k, v in span["attributes"].items() if k in SESSION_KEYS}
    return {**{key: span[key] for key in kept}, "attributes": attributes}


def _traces_with_content(files: Iterable[Path]) -> frozenset[str]:
    """Traces whose messages came as log records (`gen_ai.*` events)."""
    return frozenset(
        record.trace_id.hex()
        for file in files
        for request in recordings.requests(file)
        for record in _records(request)
        if record.event_name.startswith("gen_ai.")
        or any(
            a.key == "event.name" and a.value.string_value.startswith("gen_ai.")
            for a in record.attributes
        )
    )


def _records(request: bytes) -> Iterator[Any]:
    try:
        message = ExportLogsServiceRequest.FromString(request)
    except DecodeError:
        return
    for resource_logs in message.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            yield from scope_logs.log_records
