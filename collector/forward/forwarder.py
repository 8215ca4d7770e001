"""Everything that was taken, passed on to the user's own backend: one more reader of topic `spans`.

spans -> the requests that each record stands for -> without what has come back -> backend -> commit
"""

import logging
from collections.abc import Sequence
from functools import partial

from collector.base.clock import Clock
from collector.forward.backend import Backend, Part
from collector.forward.reader import BackendReader, Way
from collector.log.port import SPANS, Assigned, Batch, Record
from collector.otlp.items import keys_of, only
from collector.otlp.sent_form import SentRequests, as_sent, unread_in

GROUP = "forward"
MAX_RECORDS = 1024
"""Of one batch, which the log also bounds by bytes: on Kafka a record is one trace's spans of a request."""
KEPT = 60.0  # seconds for which an item is remembered at least, while there is room
ROOM = 1 << 17  # items of one generation; there are two, of 8 MiB each at most

_log = logging.getLogger(__name__)


class Forwarder(BackendReader):
    """One member of the group that forwards.

    `unread_only`: only log records that nothing here reads: the rest is of traces that `Keeper` decides of. What was
    written before `keep` was set is sent whole. The commit's metadata says up to where: twice the offset, plus one
    while `keep` is set.
    """

    def __init__(self, way: Way, *, clock: Clock, unread_only: bool = False) -> None:
        super().__init__(way, "Forwarding", group=GROUP, topic=SPANS, max_records=MAX_RECORDS)
        self._clock = clock
        self._unread_only = unread_only
        self._whole_below: dict[int, int] = {}
        self._forwarded: dict[Backend, Forwarded] = {}
        self._is_looping = False

    async def assign(self, assigned: Assigned) -> None:
        for backend in self._backends:  # what is read again has not come back
            self._forwarded[backend] = Forwarded(self._clock)
        number, known = assigned.partition, assigned.metadata or 0
        # `keep` was set, or taken away, since. Metadata never go back.
        if assigned.offset is not None and self._unread_only != bool(known % 2):
            known = max(known // 2, await self._end(number)) * 2 + (1 if self._unread_only else 2)
            await self._commit_to(number, assigned.offset, known)
        self._whole_below[number] = known // 2
        await super().assign(assigned)

    def _first_metadata(self, end: int) -> int:
        """Nothing waits where no one has read before: what comes from here on is as `keep` says."""
        return 2 * end + self._unread_only

    async def take(self, batch: Batch) -> None:
        """The backend has every record of the batch when this returns, or will never take it."""
        self._backends.spans.count("expired", self._expired(batch))
        spans, logs = list[Part](), list[Part]()
        records = [each for each in batch.records if self._is_news(each)]
        for record in records:
            sent = self._sent(record)
            spans += await self._news(self._backends.spans, sent.spans, record)
            logs += await self._news(self._backends.log_records, sent.log_records, record)
        await self._backends.spans.deliver(spans, self._stopping)
        await self._backends.log_records.deliver(logs, self._stopping)
        for record in records:
            self._offsets.done(record.position)

    def _sent(self, record: Record) -> SentRequests:
        _, partition, offset = record.position
        if self._unread_only and offset >= self._whole_below[partition]:
            return SentRequests(b"", unread_in(record.value))
        return as_sent(record.value)

    async def commit(self) -> None:
        if not self._backends.are_holding:
            await super().commit()

    async def _news(self, backend: Backend, request: bytes, record: Record) -> list[Part]:
        """The request without what was forwarded within the last minute; nothing if nothing is left."""
        if not request:
            return []
        keys = await backend.read(request, keys_of)
        met = self._forwarded[backend].again(keys, record.time)
        if not met:
            return [Part(request, len(keys))]
        if not self._is_looping:
            self._is_looping = True
            _log.warning(
                "What was forwarded comes back to this receiver: forward.endpoint leads to it again, such as through"
                " a Collector. It is not forwarded a second time (spanwise_forward_requests_total, returned);"
                " docs/collector.md."
            )
        backend.count("returned")
        rest = await backend.read(request, partial(only, wanted=lambda at: at not in met))
        return [Part(rest, len(keys) - len(met))] if rest else []


class Forwarded:
    """The keys of items (`collector/otlp/items.py`), in two generations: the older one is forgotten as a whole.

    What comes back is read behind all that waits in the log. So a generation ends when the records that are read were
    written a minute after it began, however late they are read. `clock`: that of the log: when items are sent.
    """

    def __init__(self, clock: Clock, *, room: int = ROOM) -> None:
        self._clock = clock
        self._room = room
        self._newer: set[int] = set()
        self._older: set[int] = set()
        self._began = self._noted = clock()

    def again(self, keys: Sequence[int | None], written: float) -> set[int]:
        """The places of those that were here before; from now on all of them were.

        `written`: the log time of their record.
        """
        if written - self._noted >= KEPT:  # also the newest were sent more than a minute before
            self._newer = set()
            self._turn()
        elif written - self._began >= KEPT:
            self._turn()
        self._noted = self._clock()
        met = {at for at, key in enumerate(keys) if key in self._newer or key in self._older}
        for key in keys:
            if key is not None:
                if len(self._newer) >= self._room:
                    self._turn()
                self._newer.add(key)
        return met

    def _turn(self) -> None:
        self._older, self._newer = self._newer, set()
        self._began = self._clock()
