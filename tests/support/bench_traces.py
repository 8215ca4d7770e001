"""The traces of the bench's load: in pieces as the receiver cuts them, read, and as jobs for a worker."""

from collections.abc import Iterable, Mapping, Sequence

from collector.otlp.split import split_by_trace
from collector.reading.port import ReadJob
from evaluators.dialects.read import read_trace
from evaluators.model import Trace
from tests.bench.load import Request, requests


def pieces_of(load: Iterable[Request]) -> Mapping[str, Sequence[bytes]]:
    """By trace id."""
    found: dict[str, list[bytes]] = {}
    for each in load:
        for piece in split_by_trace(each.body, max_item=1 << 22).pieces:
            found.setdefault(piece.key.hex(), []).append(piece.value)
    return found


def read_traces(count: int) -> list[Trace]:
    """So many, read."""
    pieces = pieces_of(requests(count, 64))
    return [read_trace(each, trace_id=id_, closed="root_ended") for id_, each in pieces.items()]


def read_jobs(traces: int = 12) -> list[ReadJob]:
    """One job for each trace, whole."""
    return [
        ReadJob(
            trace_id=bytes.fromhex(id_),
            pieces=tuple(each),
            closed="root_ended",
            service=f"agent-{n % 2}",
        )
        for n, (id_, each) in enumerate(pieces_of(requests(traces, 64)).items())
    ]
