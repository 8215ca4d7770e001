"""Recordings as normalised traces."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeGuard

from opentelemetry.sdk.trace import ReadableSpan

from collector.base.frames import pack_frame
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.otlp.split import Piece
from collector.records.sent_feedback import SentFeedback
from collector.service.offline_service import OfflineService
from collector.service.recorded_traces import RecordedTraces
from collector.service.recordings import find
from collector.service.rooms import start_workers
from evaluators.model import Trace
from spanwise.settings import Configuration, settings_of, waits

Source = str | Path | bytes | Sequence[str | Path] | Sequence[ReadableSpan]
"""A file or folder of recordings, several of them, the bytes of one (`.otlp`, gzipped or not, OTLP/JSON lines, or a
single ExportTraceServiceRequest), or ended spans of the OpenTelemetry SDK, as its `InMemorySpanExporter` keeps them."""


class Recording(NamedTuple):
    """What was read together: a turn that is made of log records may need its neighbours' spans."""

    spans: tuple[Piece, ...]
    scores: tuple[SentFeedback, ...]  # of others


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTrace(Trace):
    """A trace with the recording that it came from, of which it is scored."""

    recording: Recording = field(repr=False, compare=False)

    @classmethod
    def of(cls, trace: Trace, recording: Recording) -> RecordedTrace:
        values = {each.name: getattr(trace, each.name) for each in fields(trace)}
        return cls(**values, recording=recording)


async def aread(source: Source, *, config: Configuration = None) -> list[Trace]:
    """The traces of recordings, in the order of their starts, as `spanwise inspect` shows them. Nothing is scored.

    Spans that the service would reject are left out, with one warning.

    Raises:
        ConfigError: a file cannot be read or is not a recording; or the configuration is wrong.
    """
    settings = settings_of(config)
    plan, telemetry = plan_from(settings), Telemetry()
    workers = start_workers(settings, plan, telemetry, count=0)
    with RecordedTraces() as recorded, _files(source) as files:
        service = OfflineService(settings, plan, workers, telemetry)
        await recorded.read(service, files, lambda _: None)
        if recorded.rejected:
            why = "; ".join(recorded.reasons)
            warnings.warn(f"{recorded.rejected} spans rejected: {why}", stacklevel=2)
        recording = Recording((*recorded.every_piece(),), (*recorded.scores,))
        return [RecordedTrace.of(trace, recording) for trace in recorded.closed.traces()]


read = waits(aread)


@contextmanager
def _files(source: Source) -> Generator[tuple[Path, ...]]:
    if _are_spans(source):
        source = _exported(source)
    if isinstance(source, bytes):
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"bytes{_suffix(source)}"
            file.write_bytes(_framed(source))
            yield (file,)
    else:
        paths = [source] if isinstance(source, str | Path) else source
        yield find([Path(str(each)) for each in paths]).files


def _are_spans(source: Source) -> TypeGuard[Sequence[ReadableSpan]]:
    return not isinstance(source, str | Path | bytes) and any(
        isinstance(each, ReadableSpan) for each in source
    )


def _exported(spans: Sequence[ReadableSpan]) -> bytes:
    """The request that the SDK's own exporters would send."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import (  # noqa: PLC0415 - protobuf, for those alone who have spans
        encode_spans,
    )

    return encode_spans(spans).SerializeToString()


def _suffix(content: bytes) -> str:
    if content.startswith(b"\x1f\x8b"):
        return ".otlp.gz"
    return ".jsonl" if content.lstrip().startswith(b"{") else ".otlp"


def _framed(content: bytes) -> bytes:
    """A single request begins with its field 1, a length-delimited one; a recording with a length of four bytes."""
    return pack_frame(content) if content.startswith(b"\x0a") else content
