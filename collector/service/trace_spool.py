"""The closed traces of recordings or of a log: in the order of their starts, or session by session."""

import tempfile
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

import msgspec

from collector.base.errors import ConfigError
from collector.log.port import TRACES, Headers, New
from collector.records.sessions import split_session_key
from collector.records.trace_summary import unpacked
from collector.records.trace_views import (
    CountedTrace,
    RawTrace,
    TraceUsage,
    decode_counted_trace,
    decode_raw_trace,
    without_spans,
)
from evaluators.model import Trace

_T = TypeVar("_T")
IN_MEMORY = 8 << 20  # bytes up to which no file is made


class SpoolPlace(NamedTuple):
    offset: int
    size: int


class Spool:
    """Bytes, first all written, then read in any order.

    The file is in the folder that TMPDIR names (else /tmp). It has no name, so that no other user can open it and it
    goes with the process, however that ends. Use it as a context manager. Raises ConfigError: from every method: the
    file cannot be made, written or read.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - `__exit__` closes it
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, content: bytes) -> SpoolPlace:
        with _explained():
            self._file.write(content)
        place = SpoolPlace(self._end, len(content))
        self._end += len(content)
        return place

    def read(self, place: SpoolPlace) -> bytes:
        with _explained():
            self._file.seek(place.offset)
            return self._file.read(place.size)


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{tempfile.tempdir or 'TMPDIR'}: {error.strerror}; recordings are sorted in a temporary file: "
            "set TMPDIR to a folder with about twice their size to spare"
        ) from error


def in_batches(
    sizes: Iterable[tuple[_T, int, int]], most_bytes: int, most_traces: int
) -> Iterator[list[_T]]:
    """The items of (item, its bytes, its traces), a few at a time; one item is never parted."""
    batch: list[_T] = []
    size = traces = 0
    for item, more_bytes, more_traces in sizes:
        if batch and (size + more_bytes > most_bytes or traces + more_traces > most_traces):
            yield batch
            batch, size, traces = [], 0, 0
        batch.append(item)
        size += more_bytes
        traces += more_traces
    if batch:
        yield batch


BATCH_BYTES = 4 << 20
"""Of the traces of the sessions that are scored at once; one session is never parted."""
BATCH_TRACES = 256  # traces that are scored at once, for the same reason


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Headers, bytes]).decode


@dataclass(frozen=True, slots=True)
class _Stored:
    key: bytes  # of its session
    usage: TraceUsage
    place: SpoolPlace


class TraceSpool(Spool):
    """The newest record of each trace; memory holds a few numbers of each."""

    def __init__(self) -> None:
        super().__init__()
        self._stored: dict[tuple[bytes, str], _Stored] = {}
        """By session and trace id: what a command of an agent sent may have the id of the agent's turn."""

    def put(self, key: bytes, value: bytes, headers: Headers = ()) -> None:
        counted = decode_counted_trace(value)
        if isinstance(counted, CountedTrace):
            place = self.add(_encode((headers, without_spans(value))))
            self._stored[key, counted.trace.trace_id] = _Stored(key, counted.trace, place)

    def keep(self, trace_ids: Collection[str]) -> None:
        self._stored = {name: each for name, each in self._stored.items() if name[1] in trace_ids}

    @property
    def usages(self) -> list[TraceUsage]:
        return [each.usage for each in self._stored.values()]

    def traces(self) -> Iterator[Trace]:
        for each in sorted(self._stored.values(), key=_order):
            _, value = _decode(self.read(each.place))
            record = decode_raw_trace(value)
            if isinstance(record, RawTrace):
                yield unpacked(record.trace)

    def closings(self) -> list[bytes]:
        """The keys of all sessions in the order in which they close: of (newest span's end, session id, service)."""
        ends: dict[bytes, int] = defaultdict(int)
        for each in self._stored.values():
            ends[each.key] = max(ends[each.key], each.usage.end_time_unix_nano)
        return sorted(ends, key=lambda key: (ends[key], *reversed(split_session_key(key))))

    def batches(self, keys: Iterable[bytes]) -> Iterator[tuple[list[bytes], list[New]]]:
        """The sessions of these keys, a few at a time, with their records in the order of (start, trace id)."""
        of: dict[bytes, list[_Stored]] = defaultdict(list)
        for each in self._stored.values():
            of[each.key].append(each)
        sizes = ((key, sum(each.place.size for each in of[key]), len(of[key])) for key in keys)
        for batch in in_batches(sizes, BATCH_BYTES, BATCH_TRACES):
            records = [each for key in batch for each in of[key]]
            yield batch, [self._record(each) for each in sorted(records, key=_order)]

    def _record(self, each: _Stored) -> New:
        headers, value = _decode(self.read(each.place))
        return New(topic=TRACES, key=each.key, value=value, headers=headers)


def _order(each: _Stored) -> tuple[int, str]:
    return each.usage.start_time_unix_nano, each.usage.trace_id
