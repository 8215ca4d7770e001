"""The rooms over a log in memory whose clock stands still.

All records have one log time, so nothing closes by itself: `assemble` closes every trace, `score` every session. The
same spans give the same signal ids as in the running service, because nothing but the spans goes into an id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from collector.clock import wall
from collector.config.tree import Config
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, SPANS, TRACES, New
from collector.otlp.redaction import redactor
from collector.otlp.repair import Decoded
from collector.otlp.signal import OtlpSignal
from collector.otlp.split import SplitRequest
from collector.pool.port import Workers
from collector.records.traces import RunRecord, TraceRecord, VerdictRecord, decode_traces
from collector.telemetry import Telemetry
from collector.wiring.rooms import ASSEMBLY, Rooms
from evaluators.model import Trace
from evaluators.plan import Plan

_UNLIMITED = 1 << 60
_READER = "offline"
"""The group of `records` and `signals`: it never commits, so the log drops nothing."""


class OfflineService:
    """Spans or trace records in, signals out, in one process and without sockets.

    Args:
        config: The configuration.
        plan: The evaluators that are due.
        workers: Read and score traces; the caller closes them.
        telemetry: Counts.
        only: What `plan` was limited to: the judge is asked for nothing else.
    """

    def __init__(
        self,
        config: Config,
        plan: Plan,
        workers: Workers,
        telemetry: Telemetry,
        *,
        only: Sequence[str] | None = None,
    ) -> None:
        self._plan = plan
        self._redact = redactor(config)
        self._max_item = config.windows.trace.max_bytes
        self._only = None if only is None else tuple(only)
        self._now = wall()
        self._log_port = MemoryLog(
            clock=self._log_clock,
            max_size=_UNLIMITED,
            groups={
                SPANS: frozenset({ASSEMBLY}),
                TRACES: frozenset({_READER}),
                SIGNALS: frozenset({_READER}),
            },
        )
        self._rooms = Rooms(
            config,
            plan,
            log=self._log_port,
            workers=workers,
            telemetry=telemetry,
            clock=wall,  # the judge's budget and its waits are real
        )

    async def take(self, request: bytes, signal: OtlpSignal) -> SplitRequest:
        """Take an export request in, as the receiver does.

        Raises:
            Undecodable: it is not valid OTLP.
        """
        decoded = Decoded(request)
        if self._redact is not None:
            decoded = self._redact(decoded, signal.request)
        split = signal.split(decoded.request, max_item=self._max_item)
        split.add(decoded)
        await self._log_port.write(
            [New(topic=signal.topic, key=each.key, value=each.value) for each in split.pieces]
        )
        return split

    async def put(self, record: New) -> None:
        """Take a finished record in, such as a trace from another log."""
        await self._log_port.write([record])

    async def assemble(self) -> None:
        """Close every trace."""
        await self._rooms.assembler().drain("end")

    async def score(self) -> None:
        """Score every trace, close every session, score it, and ask the judge about both.

        The judge is asked before the sessions are closed, so that a session closes with its verdicts.
        """
        scorer = self._rooms.scorer()
        if not self._plan.judged:
            await scorer.drain("idle")
            return
        judging = self._rooms.judging(log_clock=self._log_clock, only=self._only)
        async with judging.standing():
            await judging.drain()
            await scorer.drain("idle")
            if any(each.spec.scope == "session" for each in self._plan.judged):
                await judging.drain()
                await scorer.drain("idle")

    async def traces(self) -> list[Trace]:
        """The newest revision of every trace."""
        newest = {
            each.trace.trace_id: each.trace
            async for each in self._records()
            if isinstance(each, TraceRecord)
        }
        return list(newest.values())

    async def runs(self) -> list[RunRecord]:
        """Sessions that were runs of a task."""
        return [each async for each in self._records() if isinstance(each, RunRecord)]

    async def verdicts(self) -> list[VerdictRecord]:
        """What the judge answered."""
        return [each async for each in self._records() if isinstance(each, VerdictRecord)]

    async def signals(self) -> list[bytes]:
        """The signals' JSON, in the order in which the service would have published them."""
        return [record.value async for record in self._log_port.replay(SIGNALS, 0)]

    async def _records(self) -> AsyncIterator[object]:
        async for record in self._log_port.replay(TRACES, 0):
            yield decode_traces(record.value)

    def _log_clock(self) -> float:
        return self._now
