"""The traces that are kept, whole: a reader of topic `traces` (`forward.keep`).

    traces -> the partition's `Keeping` decides -> raw spans out of the log -> backend -> what was decided, commit

The owner of a partition of `traces` decides of its traces, and writes that into the same partition. The commit stays at
the oldest trace that is not decided, or not sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from collector.base.errors import Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.config.forward import Keep
from collector.forward.backend import Backends, Part, StopCameFirst
from collector.forward.families import ForwardFamilies
from collector.forward.keeping import ClosedTrace, Keeping, Order
from collector.forward.kept_records import ReadBack, RecentRecords
from collector.log.consumer import Consumer
from collector.log.port import TRACES, Assigned, Batch, Commit, Ends, Log, New, Position, Record
from collector.otlp.items import keys_of
from collector.otlp.sent_form import as_sent
from collector.otlp.trace_state import marked, randomness_of
from collector.records.codec import encode
from collector.records.keeping import BroadcastRecord, KeepingRecord, KeepingState
from collector.records.otlp_signals import LOGS
from collector.records.sent_trace import SentTrace, SessionStanding, decode_sent
from collector.records.sessions import session_key
from collector.records.span_refs import Piece, pieces_read
from collector.records.trace_outcomes import outcomes_of
from collector.records.traces import RunawayRecord, VerdictRecord
from evaluators.model import Outcome

GROUP = "forward.keep"
MAX_RECORDS = 256
AT_ONCE = 8 << 20
"""Bytes of spans that are read before they are sent."""
MOST_STATE = 8 << 20
"""Bytes of a record that holds everything: less than half of what the log takes, as names may be long."""
DELTAS = 64
"""Records between two that hold everything: what a new owner reads back."""

_log = logging.getLogger(__name__)


@dataclass
class _Partition:
    keeping: Keeping
    begins: int = 0
    """Records below it are not sent: they were there before anything was forwarded."""
    read: int = 0
    """The offset behind the newest record that was read."""
    since: list[int] = field(default_factory=list[int])
    """See `KeepingRecord`."""
    failing: dict[bytes, float | None] = field(default_factory=dict[bytes, float | None])
    committed: tuple[int, int | None] = (0, None)
    alarms: list[str] = field(default_factory=list[str])
    """As they were written last."""

    @property
    def is_changed(self) -> bool:
        keeping = self.keeping
        changed = bool(keeping.changed or keeping.changed_said or self.failing)
        return changed or keeping.state.alarms != self.alarms


class Keeper(Consumer):
    """One member of the group that keeps traces.

    Args:
        log: Read from, written to and committed to.
        backends: Where kept traces go.
        settings: What is kept.
        late: Seconds for which what is late follows its trace.
        telemetry: For what is counted.
        has_begun: See `Forwarder`.
        drains: The process will not come back: a stop decides of every trace.
    """

    def __init__(
        self,
        *,
        log: Log,
        backends: Backends,
        settings: Keep,
        late: float,
        telemetry: Telemetry,
        has_begun: asyncio.Event,
        drains: bool = False,
    ) -> None:
        super().__init__(
            log=log,
            group=GROUP,
            topic=TRACES,
            retry=Retry("Keeping traces"),
            telemetry=telemetry,
            max_records=MAX_RECORDS,
        )
        self._backends = backends
        self._settings = settings
        self._late = late
        self._traces = ForwardFamilies(telemetry).traces
        self._has_begun = has_begun
        self._drains = drains
        self._stopping = asyncio.Event()
        self._partitions: dict[int, _Partition] = {}
        self._recent = RecentRecords()

    async def run(self, stopping: asyncio.Event) -> None:
        """Keep until `stopping` is set; the request in hand has a few seconds then."""
        self._stopping = stopping
        try:
            await super().run(stopping)
        except* StopCameFirst:
            pass
        finally:
            for backend in self._backends:
                await backend.close()

    async def assign(self, assigned: Assigned) -> None:
        """Read back what was decided; begin at the end where no one has kept before."""
        log, number = self._log_port, assigned.partition

        def empty(state: KeepingState | None) -> Keeping:
            partitions = log.partitions(TRACES)
            return Keeping(self._settings, late=self._late, partitions=partitions, state=state)

        read_back = ReadBack(self._read_record, number, empty)
        state, since = await read_back.state(assigned.metadata)
        keeping = empty(state)
        found = self._partitions[number] = _Partition(keeping, since=since)
        found.read, found.alarms = assigned.offset or 0, keeping.state.alarms
        found.committed = (assigned.offset or 0, assigned.metadata)
        if assigned.offset is None and isinstance(log, Ends):
            end = await self._retry.log("find its place", lambda: log.end(TRACES, number))
            commit = Commit(group=GROUP, topic=TRACES, partition=number, offset=end)
            await self._retry.log(f"commit {TRACES}", lambda: log.write((), [commit]))
            found.begins = found.read = end
            found.committed = (end, None)
        self._has_begun.set()

    async def revoke(self, partition: int) -> None:
        self._partitions.pop(partition, None)

    async def take(self, batch: Batch) -> None:
        """Decide of what is due before each record, and at the end of a partition by its time."""
        for partition, count in batch.lost.items():
            if (found := self._partitions.get(partition)) is not None and not found.begins:
                self._lose("expired", count)
        orders: list[tuple[int, Order]] = []
        for record in batch.records:
            number = record.position.partition
            found = self._partitions.get(number)
            if found is None or record.position.offset < found.begins:
                continue
            found.begins = 0
            orders += self._due(number, record.time)
            orders += [(number, order) for order in await self._taken(found, record)]
            found.read = record.position.offset + 1
        for number, now in batch.ends.items():
            orders += self._due(number, now)
        await self._send(orders)

    async def commit(self) -> None:
        """Write what was decided, then commit: on disk in one step, on Kafka in this order."""
        if self._backends.are_holding:
            return
        for number, each in self._partitions.items():
            oldest = each.keeping.oldest
            offset = each.read if oldest is None else min(each.read, oldest)
            if each.is_changed:
                record = self._record(each)
                value = encode(record)
                while record.state is not None and len(value) > MOST_STATE:
                    each.keeping.forget_half()
                    value = encode(record)
                new = New(topic=TRACES, key=b"", value=value, partition=number)
                (position,) = await self._retry.log(
                    "write decisions", lambda new=new: self._log_port.write([new])
                )
                each.since = [*record.since, position.offset]
                each.keeping.changed, each.keeping.changed_said, each.failing = [], {}, {}
            state = each.since[-1] if each.since else None
            if (offset, state) == each.committed or each.begins:
                continue
            commit = Commit(
                group=GROUP, topic=TRACES, partition=number, offset=offset, metadata=state
            )
            await self._retry.log(
                f"commit {TRACES}", lambda commit=commit: self._log_port.write((), [commit])
            )
            each.committed = (offset, state)

    async def finish(self) -> None:
        """Of a log that ends with the process, every trace is decided now."""
        if self._drains:
            self._at_end.clear()
            while not self._has_read_all:
                await self.step()
            await self._send(
                [each for number in self._partitions for each in self._due(number, float("inf"))]
            )
        await self.commit()

    # --- what the log says -------------------------------------------------------------------------------------------

    async def _taken(self, found: _Partition, record: Record) -> list[Order]:
        keeping, now = found.keeping, record.time
        try:
            read = decode_sent(record.value)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return []
        orders: list[Order] = []
        match read:
            case SentTrace():
                self._recent.put(record, read)
                orders = keeping.closed(await self._closed(read, record), now)
            case RunawayRecord(subject=subject) if subject.trace_id is not None:
                orders = keeping.failed(bytes.fromhex(subject.trace_id), now)
            case VerdictRecord(scope="trace") if any(map(_fails, read.outcomes)):
                orders = keeping.failed(bytes.fromhex(read.subject), now)
            case BroadcastRecord():
                orders = _broadcast(keeping, read, now)
            case SessionStanding():
                key = session_key(read.service, read.session_id)
                orders = self._session(found, key, now, fails=read.failed)
            case _:
                pass
        return orders

    def _session(self, found: _Partition, key: bytes, now: float, *, fails: bool) -> list[Order]:
        session = _session_id(key)
        if fails != (session in found.keeping.state.failing):
            found.failing[session] = now if fails else None
        return found.keeping.session(session, now, fails=fails)

    async def _closed(self, read: SentTrace, record: Record) -> ClosedTrace:
        trace = read.trace
        outcomes = outcomes_of(record.headers)
        trace_id = bytes.fromhex(trace.trace_id)
        return ClosedTrace(
            trace_id=trace_id,
            offset=record.position.offset,
            service=trace.service,
            agent=trace.agent,
            version=trace.agent_version,
            session=_session_id(record.key),
            duration=trace.seconds,
            randomness=randomness_of(trace_id, await self._first_spans(read)),
            failed=trace.status == "error"
            or (outcomes is not None and any(map(_fails, outcomes.outcomes))),
            is_other=trace.is_other,
        )

    async def _first_spans(self, read: SentTrace) -> bytes:
        first = await self._read(read.spans[:1])
        return first[0] or b"" if first else b""

    async def _read(self, pieces: Iterable[Piece]) -> list[bytes | None]:
        wanted = tuple(pieces)
        return await self._retry.log("read spans", lambda: pieces_read(self._log_port, wanted))

    def _due(self, number: int, now: float) -> list[tuple[int, Order]]:
        found = self._partitions.get(number)
        orders: list[tuple[int, Order]] = []
        for decision, order in () if found is None else found.keeping.due(now):
            if order is None:
                self._traces.labels("dropped", decision.reason).inc()
            else:
                orders.append((number, order))
        return orders

    # --- to the backend ----------------------------------------------------------------------------------------------

    async def _send(self, orders: list[tuple[int, Order]]) -> None:
        spans, logs = list[Part](), list[Part]()
        size = 0
        for number, order in orders:
            for each in await self._parts(number, order):
                target = logs if each.is_log else spans
                target.append(each.part)
                size += len(each.part.body)
            if size >= AT_ONCE:
                await self._deliver(spans, logs)
                spans, logs, size = [], [], 0
        await self._deliver(spans, logs)

    async def _deliver(self, spans: list[Part], logs: list[Part]) -> None:
        for reason, count in (await self._backends.spans.deliver(spans, self._stopping)).items():
            self._lose(reason, count)
        await self._backends.log_records.deliver(logs, self._stopping)

    async def _parts(self, number: int, order: Order) -> list[_SentPart]:
        """The trace's requests; none where its spans are not in the log any more."""
        decision = order.decision
        trace = await self._trace(number, decision.offset)
        known = None if order.after is None else await self._trace(number, order.after)
        if order.is_new:
            self._traces.labels("kept", decision.reason).inc()
        if trace is None:
            self._lose("expired", 1)
            return []
        before = frozenset(() if known is None else known.spans)
        read = await self._read(each for each in trace.spans if each not in before)
        if None in read:
            self._lose("expired", 1)
            return []
        root = None if trace.trace.root_span_id is None else bytes.fromhex(trace.trace.root_span_id)
        parts: list[_SentPart] = []
        for raw in read:
            sent = as_sent(raw or b"")
            if sent.spans:
                body, count = marked(
                    sent.spans,
                    threshold=decision.threshold,
                    reason=decision.reason,
                    root=root,
                )
                parts.append(_SentPart(Part(body, count)))
            if sent.log_records:
                count = len(keys_of(sent.log_records, LOGS.request))
                parts.append(_SentPart(Part(sent.log_records, count), is_log=True))
        return parts

    async def _trace(self, number: int, offset: int) -> SentTrace | None:
        held = self._recent.get(number, offset)
        if held is not None:
            return held
        record = await self._read_record(Position(TRACES, number, offset))
        try:
            read = None if record is None else decode_sent(record.value)
        except Undecodable:
            return None
        return read if isinstance(read, SentTrace) else None

    async def _read_record(self, position: Position) -> Record | None:
        return await self._retry.log("read back", lambda: self._log_port.get(position))

    def _lose(self, reason: str, count: int) -> None:
        self._traces.labels("lost", reason).inc(count)
        if reason == "expired":
            _log.error("The log dropped traces, or their spans, before they were sent: %d", count)

    # --- what was decided --------------------------------------------------------------------------------------------

    def _record(self, each: _Partition) -> KeepingRecord:
        keeping = each.keeping
        each.alarms = keeping.state.alarms
        if not each.since or len(each.since) >= DELTAS:
            return KeepingRecord(state=keeping.state)
        return KeepingRecord(
            since=tuple(each.since),
            decisions=tuple(keeping.changed),
            failing=each.failing,
            said=keeping.changed_said,
            alarms=tuple(keeping.state.alarms),
        )


@dataclass(frozen=True, slots=True)
class _SentPart:
    part: Part
    is_log: bool = False


def _broadcast(keeping: Keeping, broadcast: BroadcastRecord, now: float) -> list[Order]:
    if broadcast.alarms is not None:
        keeping.state.alarms = [*broadcast.alarms]
    orders: list[Order] = []
    if broadcast.trace_id is not None:
        orders += keeping.said(bytes.fromhex(broadcast.trace_id), now)
    if broadcast.session_key is not None:
        orders += keeping.said(_session_id(broadcast.session_key), now)
    return orders


def _fails(outcome: Outcome) -> bool:
    return outcome.final and outcome.success is False


def _session_id(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:16]
