"""Recordings as closed traces: read request by request, sorted by trace, assembled a few traces at a time.

    files --split--> pieces by trace --assemble--> traces

What was read is in temporary files between the steps, so memory holds a few traces, however long the recordings.
"""

import asyncio
import math
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Self

from collector.base.errors import ConfigError, TooLarge, Undecodable
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.otlp.split import Piece
from collector.records.moved import EvaluatorScores
from collector.records.sent_feedback import SentFeedback
from collector.records.what_changed import SessionSide, failed_by_tool
from collector.service.offline_service import OfflineService
from collector.service.recorded_scores import MOST, scores_in
from collector.service.recordings import requests, signal_of
from collector.service.rooms import start_workers
from collector.service.trace_spool import Spool, SpoolPlace, TraceSpool, in_batches
from evaluators.formulas.differences import facts
from evaluators.model import Trace
from evaluators.plan import Plan

BATCH_BYTES = 8 << 20  # of pieces that are read at once; one trace is never parted
BATCH_TRACES = 512
"""Traces that are assembled at once: small ones would fill BATCH_BYTES by the ten thousand."""


class PieceSpool(Spool):
    """The pieces of every trace, in the order in which they were read; memory holds only where they are."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[bytes, array[int]] = {}
        """By trace id, in the order of its first piece: offset and size of each of its pieces."""

    def put(self, piece: Piece) -> None:
        self._places.setdefault(piece.key, array("Q")).extend(self.add(piece.value))

    @property
    def sizes(self) -> dict[str, int]:
        return {trace_id.hex(): sum(places[1::2]) for trace_id, places in self._places.items()}

    def of(self, trace_id: bytes) -> Iterator[bytes]:
        numbers = iter(self._places.get(trace_id, ()))
        for offset, size in zip(numbers, numbers, strict=True):
            yield self.read(SpoolPlace(offset, size))

    def batches(self) -> Iterator[list[Piece]]:
        sizes = ((each, sum(places[1::2]), 1) for each, places in self._places.items())
        for batch in in_batches(sizes, BATCH_BYTES, BATCH_TRACES):
            yield [Piece(trace_id, value) for trace_id in batch for value in self.of(trace_id)]


MAX_REASONS = 5
Progress = Callable[[Path], None]
"""Called after each file."""


class RecordedTraces:
    """The traces of recordings. Use it as a context manager: its temporary files end with it."""

    def __init__(self) -> None:
        self._pieces = PieceSpool()
        self.closed = TraceSpool()  # the traces, once they are assembled
        self.scores: list[SentFeedback] = []  # those of others
        self.rejected = 0  # spans that the receiver would have rejected
        self.reasons: list[str] = []  # why the first few were

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pieces.__exit__()
        self.closed.__exit__()

    async def read(
        self, service: OfflineService, files: Iterable[Path], progress: Progress
    ) -> None:
        """Read every file to its end, then close every trace.

        Raises ConfigError: a file cannot be read, or holds no export requests of its signal.
        """
        for file in files:
            self._take(service, file)
            progress(file)
            await asyncio.sleep(0)
        await self._close(service)

    async def put(self, service: OfflineService, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self._pieces.put(piece)
        await self._close(service)

    async def _close(self, service: OfflineService) -> None:
        for pieces in self._pieces.batches():
            for record in await service.assemble(pieces):
                self.closed.put(record.key, record.value, record.headers)

    def every_piece(self) -> Iterator[Piece]:
        return chain.from_iterable(self._pieces.batches())

    @property
    def sizes(self) -> dict[str, int]:
        return self._pieces.sizes

    def pieces(self, trace_id: str) -> Iterator[bytes]:
        return self._pieces.of(bytes.fromhex(trace_id))

    def _take(self, service: OfflineService, file: Path) -> None:
        signal = signal_of(file)
        if isinstance(signal, str):
            raise ConfigError(f"{file}: holds the {signal} signal, which is not read")
        for number, request in enumerate(requests(file, signal.request), 1):
            try:
                split = service.split(request, signal)
            except (TooLarge, Undecodable) as error:
                raise ConfigError(f"{file}: request {number}: {error}") from error
            scores = scores_in(split.request or request, signal.items)
            self.scores += islice(scores, MOST - len(self.scores))
            for piece in split.pieces:
                self._pieces.put(piece)
            self.rejected += split.rejected
            self.reasons += split.reasons[: MAX_REASONS - len(self.reasons)]


@contextmanager
def read_recordings(
    config: Config, files: Iterable[Path], progress: Progress
) -> Generator[RecordedTraces]:
    """Recordings as normalised traces; nothing is scored. Raises ConfigError: see `RecordedTraces.read`."""
    plan_from(config)  # a mistake in the configuration is one here, too
    nothing, telemetry = Plan(), Telemetry()
    workers = start_workers(config, nothing, telemetry, count=0)
    with RecordedTraces() as recorded:
        service = OfflineService(config, nothing, workers, telemetry)
        asyncio.run(recorded.read(service, files, progress))
        yield recorded


SessionKey = tuple[str, str]  # (service, session id)


def recorded_side(
    config: Config,
    files: Sequence[Path],
    scores: Mapping[SessionKey, Mapping[str, EvaluatorScores]] | None = None,
) -> list[SessionSide]:
    """The sessions of the recordings. `scores`: what evaluators said of them.

    Raises ConfigError: a file cannot be read.
    """
    sessions: dict[SessionKey, list[Trace]] = {}
    with read_recordings(config, files, lambda _: None) as recorded:
        for trace in recorded.closed.traces():
            if trace.is_turn:
                sessions.setdefault((trace.service, trace.session_id), []).append(trace)
    return [_session(traces, (scores or {}).get(key, {})) for key, traces in sessions.items()]


def _session(traces: Sequence[Trace], scores: Mapping[str, EvaluatorScores]) -> SessionSide:
    failed = failed_by_tool(call for trace in traces for call in trace.tool_calls)
    return SessionSide(
        facts=facts(
            versions=(each.agent_version for each in traces),
            models=(model for each in traces for model in each.models),
            users=(each.user_id for each in traces),
            attributes=(each.attributes for each in traces),
            tools=failed,
            questions=(each.input for each in traces),
        ),
        tools=failed,
        seconds=math.fsum(each.duration for each in traces),
        cost=_sum(each.cost_usd for each in traces),
        scores=scores,
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [each for each in amounts if each is not None]
    return math.fsum(known) if known else None
