"""The traces that are kept, whole: a reader of topic `traces` (`forward.keep`).

    traces -> the partition's `Keeping` decides -> raw spans out of the log -> backend -> what was decided, commit

The owner of a partition of `traces` decides of its traces, and writes that into the same partition. The commit stays at
the oldest trace that is not decided, or not sent.
"""

import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from collector.base.errors import Undecodable
from collector.config.forward import Keep
from collector.forward.backend import Part
from collector.forward.families import ForwardFamilies
from collector.forward.keeping import Keeping, Order
from collector.forward.reader import BackendReader, Way
from collector.log.port import TRACES, Assigned, Batch, New, Position, Record
from collector.otlp.items import keys_of
from collector.otlp.sent_form import as_sent
from collector.otlp.trace_state import marked
from collector.records.codec import encode
from collector.records.keeping import BroadcastRecord, KeepingRecord, session_of
from collector.records.otlp_signals import LOGS
from collector.records.sent_trace import SentTrace, SessionStanding, decode_sent
from collector.records.sessions import session_key
from collector.records.span_refs import pieces_read
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

RECENT = 64 << 20
"""Bytes of records that wait for their decision and are held: on Kafka each is a request to read again."""

_log = logging.getLogger(__name__)


@dataclass
class _Partition:
    keeping: Keeping
    since: list[int]
    """See `KeepingRecord`."""
    read: int
    """The offset behind the newest record that was read."""
    committed: tuple[int, int | None]


class RecentTraces:
    """The newest traces as they were read, within RECENT bytes of records."""

    def __init__(self) -> None:
        self._traces: OrderedDict[tuple[int, int], tuple[SentTrace, int]] = OrderedDict()
        self._size = 0

    def put(self, record: Record, read: SentTrace) -> None:
        _, partition, offset = record.position
        _, before = self._traces.pop((partition, offset), (read, 0))
        self._traces[partition, offset] = read, len(record.value)
        self._size += len(record.value) - before
        while self._size > RECENT:
            self._size -= self._traces.popitem(last=False)[1][1]

    def get(self, partition: int, offset: int) -> SentTrace | None:
        return self._traces.get((partition, offset), (None,))[0]


class Keeper(BackendReader):
    """One member of the group that keeps traces.

    `late`: seconds for which what is late follows its trace. Where the way `drains`, a stop decides of every trace.
    """

    def __init__(self, way: Way, *, settings: Keep, late: float) -> None:
        super().__init__(way, "Keeping traces", group=GROUP, topic=TRACES, max_records=MAX_RECORDS)
        self._settings = settings
        self._late = late
        self._traces = ForwardFamilies(way.telemetry).traces
        self._partitions: dict[int, _Partition] = {}
        self._recent = RecentTraces()

    async def assign(self, assigned: Assigned) -> None:
        """Read back what was decided."""
        number = assigned.partition
        keeping, since = await self._read_back(number, assigned.metadata)
        await super().assign(assigned)
        offset = assigned.offset or self._begins.get(number, 0)
        self._partitions[number] = _Partition(keeping, since, offset, (offset, assigned.metadata))

    async def _read_back(self, number: int, offset: int | None) -> tuple[Keeping, list[int]]:
        """What was decided, and the records that say it; `offset`: of the newest. Nothing where they have expired."""
        newest = None if offset is None else await self._record(number, offset)
        records: list[object] = []
        since: list[int] = []
        if isinstance(newest, KeepingRecord) and offset is not None:
            since = [*newest.since, offset]
            records = [*[await self._record(number, each) for each in newest.since], newest]
        first = records[0] if records else None
        state = first.state if isinstance(first, KeepingRecord) else None
        partitions = self._log_port.partitions(TRACES)
        keeping = Keeping(self._settings, late=self._late, partitions=partitions, state=state)
        for record in () if state is None else records[1:]:
            if isinstance(record, KeepingRecord):
                keeping.read_back(record)
        return keeping, [] if state is None else since

    async def revoke(self, partition: int) -> None:
        self._partitions.pop(partition, None)

    async def take(self, batch: Batch) -> None:
        """Decide of what is due before each record, and at the end of a partition by its time."""
        self._lose("expired", self._expired(batch))
        orders: list[tuple[int, Order]] = []
        for record in batch.records:
            number = record.position.partition
            found = self._partitions.get(number)
            if found is None or not self._is_news(record):
                continue
            orders += self._due(number, record.time)
            orders += [(number, order) for order in self._taken(found, record)]
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
            if each.keeping.news != KeepingRecord():
                await self._write(number, each)
            state = each.since[-1] if each.since else None
            if (offset, state) == each.committed or number in self._begins:
                continue
            await self._commit_to(number, offset, state)
            each.committed = (offset, state)

    async def _write(self, number: int, each: _Partition) -> None:
        keeping = each.keeping
        if each.since and len(each.since) < DELTAS:
            keeping.news.since = each.since
        else:
            keeping.news = KeepingRecord(state=keeping.state, decisions=keeping.news.decisions)
        value = encode(keeping.news)
        while keeping.news.state is not None and len(value) > MOST_STATE:
            keeping.forget_half()
            value = encode(keeping.news)
        new = New(topic=TRACES, key=b"", value=value, partition=number)
        (at,) = await self._retry.log("write decisions", lambda: self._log_port.write([new]))
        each.since = [*keeping.news.since, at.offset]
        keeping.news = KeepingRecord()

    async def finish(self) -> None:
        """Of a log that ends with the process, every trace is decided now."""
        await super().finish()
        if self._way.drains:
            await self._send(
                [each for number in self._partitions for each in self._due(number, float("inf"))]
            )
            await self.commit()

    def _taken(self, found: _Partition, record: Record) -> list[Order]:
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
                outcomes = outcomes_of(record.headers)
                fails = outcomes is not None and any(map(_fails, outcomes.outcomes))
                offset = record.position.offset
                closed = read.closed(key=record.key, offset=offset, failed=fails)
                orders = keeping.closed(closed, now)
            case RunawayRecord() if read.subject.trace_id is not None:
                orders = keeping.failed(bytes.fromhex(read.subject.trace_id), now)
            case VerdictRecord(scope="trace") if any(map(_fails, read.outcomes)):
                orders = keeping.failed(bytes.fromhex(read.subject), now)
            case BroadcastRecord(alarms=alarms) if alarms is not None:
                keeping.alarmed(list(alarms))
            case BroadcastRecord(said=subject) if subject is not None:
                orders = keeping.said(subject, now)
            case SessionStanding():
                session = session_of(session_key(read.service, read.session_id))
                orders = keeping.session(session, now, fails=read.failed)
            case _:
                pass
        return orders

    def _due(self, number: int, now: float) -> list[tuple[int, Order]]:
        found = self._partitions.get(number)
        orders: list[tuple[int, Order]] = []
        for decision in () if found is None else found.keeping.due(now):
            if decision.is_kept:
                orders.append((number, Order(decision)))
            else:
                self._traces.labels("dropped", decision.reason).inc()
        return orders

    async def _send(self, orders: list[tuple[int, Order]]) -> None:
        spans, logs = list[Part](), list[Part]()
        size = expired = 0
        for number, order in orders:
            added = await self._put(number, order, spans, logs)
            size += added or 0
            expired += added is None
            if size >= AT_ONCE:
                await self._deliver(spans, logs)
                spans, logs, size = [], [], 0
        await self._deliver(spans, logs)
        if expired:
            self._lose("expired", expired)
        if expired and self._expiries.due():
            _log.error("The log dropped the spans of traces before they were sent: %d", expired)

    async def _deliver(self, spans: list[Part], logs: list[Part]) -> None:
        for reason, count in (await self._backends.spans.deliver(spans, self._stopping)).items():
            self._lose(reason, count)
        await self._backends.log_records.deliver(logs, self._stopping)

    async def _put(
        self, number: int, order: Order, spans: list[Part], logs: list[Part]
    ) -> int | None:
        """Add the trace's requests; how many bytes of spans. None where they are not in the log any more."""
        decision, after = order
        if after is None:
            self._traces.labels("kept", decision.reason).inc()
        trace = await self._trace(number, decision.trace.offset)
        known = None if after is None else await self._trace(number, after)
        if trace is None:
            return None
        before = frozenset(() if known is None else known.spans)
        pieces = [each for each in trace.spans if each not in before]
        read = await self._retry.log("read spans", lambda: pieces_read(self._log_port, pieces))
        if None in read:
            return None
        root = None if trace.trace.root_span_id is None else bytes.fromhex(trace.trace.root_span_id)
        for raw in filter(None, read):
            sent = as_sent(raw)
            if sent.spans:
                marks = marked(
                    sent.spans, threshold=decision.threshold, reason=decision.reason, root=root
                )
                spans.append(Part(*marks))
            if sent.log_records:
                logs.append(Part(sent.log_records, len(keys_of(sent.log_records, LOGS.request))))
        return sum(len(each or b"") for each in read)

    async def _trace(self, number: int, offset: int) -> SentTrace | None:
        found = self._recent.get(number, offset) or await self._record(number, offset)
        return found if isinstance(found, SentTrace) else None

    async def _record(self, number: int, offset: int) -> object:
        """A record of `traces` once more; None: it has expired."""
        position = Position(TRACES, number, offset)
        record = await self._retry.log("read back", lambda: self._log_port.get(position))
        with suppress(Undecodable):
            return None if record is None else decode_sent(record.value)
        return None

    def _lose(self, reason: str, count: int) -> None:
        self._traces.labels("lost", reason).inc(count)


def _fails(outcome: Outcome) -> bool:
    return outcome.final and outcome.success is False
