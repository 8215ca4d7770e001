"""The traces of the bench's load, as jobs for a worker."""

from collector.otlp.split import split_by_trace
from collector.reading.port import ReadJob
from tests.bench.load import requests


def read_jobs(traces: int = 12) -> list[ReadJob]:
    """One job for each trace, whole."""
    pieces: dict[bytes, list[bytes]] = {}
    for each in requests(traces, 64):
        for piece in split_by_trace(each.body, max_item=1 << 22).pieces:
            pieces.setdefault(piece.key, []).append(piece.value)
    return [
        ReadJob(trace_id=id_, pieces=tuple(each), closed="root_ended", service=f"agent-{n % 2}")
        for n, (id_, each) in enumerate(pieces.items())
    ]
