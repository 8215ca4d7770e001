"""Recordings without content: what instrumentations send that export names, counts, ids and errors and no more."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.otlp import spans_of
from tests.support.recordings import requests as recorded
from tests.support.recordings import write

_FACTS = re.compile(
    r"gen_ai\.(operation\.name|system|provider\.name|(request|response)\.model|response\.id|usage\..+"
    r"|tool\.(name|type|call\.id)|agent\.(name|id)|conversation\.id)"
    r"|openinference\.span\.kind|llm\.(model_name|system|request\.type|token_count\..+|usage\..+)|tool\.name"
    r"|session\.id|user\.id|error\.type"
    r"|traceloop\.(span\.kind|entity\.name|workflow\.name|association\.properties\.session_id)"
    r"|langfuse\.(observation\.(type|model\.name|usage_details)|session\.id)"
    r"|(ai\.)?operationId|operation\.name|ai\.(model\.id|toolCall\.(name|id)|usage\..+)"
)
"""Keys of attributes that hold no content."""


def without_content(recording: Path, target: Path) -> Path:
    """A copy of a recording with nothing but facts: no text, no arguments, no results, no definitions of tools."""
    return _copy(recording, target, lambda span: _keep(span, _FACTS))


def hidden(recording: Path, target: Path) -> Path:
    """A copy of an OpenInference recording as OPENINFERENCE_HIDE_INPUTS and _HIDE_OUTPUTS make it."""
    return _copy(recording, target, _hide)


def _copy(recording: Path, target: Path, change: Callable[[Any], None]) -> Path:
    requests = [ExportTraceServiceRequest.FromString(raw) for raw in recorded(recording)]
    for span in (span for request in requests for span in spans_of(request)):
        change(span)
    write(target, (each.SerializeToString() for each in requests))
    return target


def _keep(span: Any, *patterns: re.Pattern[str]) -> None:
    kept = [each for each in span.attributes if any(p.fullmatch(each.key) for p in patterns)]
    del span.attributes[:]
    span.attributes.extend(kept)
    events = [each for each in span.events if each.name == "exception"]
    del span.events[:]
    span.events.extend(events)


def _hide(span: Any) -> None:
    gone = ("llm.input_messages", "llm.output_messages", "input.mime_type", "output.mime_type")
    kept = [each for each in span.attributes if not each.key.startswith(gone)]
    for each in kept:
        if each.key in {"input.value", "output.value"}:
            each.value.string_value = "__REDACTED__"
    del span.attributes[:]
    span.attributes.extend(kept)
