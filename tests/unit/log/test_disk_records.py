"""What one write transaction remembers of the log is what stands in it."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.log.disk.frames import offset_of
from collector.log.disk.store import DiskStore
from collector.log.disk.transaction import DiskRecords, key_digest
from collector.log.port import SESSIONS, TRACES, WINDOWS, Position, Record

KEYS = (b"a", b"b", b"c")
Written = tuple[str, bytes, int]
"""Topic, key and the size of the value."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DiskStore]:
    store = DiskStore(tmp_path_factory.mktemp("log"), max_size=8 << 20, partitions=1)
    yield store
    store.close()


def written(records: DiskRecords, calls: list[list[Written]]) -> dict[tuple[str, bytes], int]:
    """Append the calls; the offset of the newest record of each key, as it must be."""
    newest: dict[tuple[str, bytes], int] = {}
    offset = 0
    for call in calls:
        prepared: list[Record] = []
        for topic, key, size in call:
            position, value = Position(topic, 0, offset), b"v" * size
            prepared.append(Record(position=position, key=key, value=value, time=1.0))
            if not value and topic != TRACES:
                newest.pop((topic, key), None)
            else:
                newest[topic, key] = offset
            offset += 1
        for each in prepared:
            records.need(each)
            records.used(each.position.topic)
        records.append(prepared)
    return newest


CALLS = st.lists(
    st.lists(
        st.one_of(
            st.tuples(
                st.sampled_from((SESSIONS, WINDOWS)),
                st.sampled_from(KEYS),
                st.sampled_from((0, 10, 5_000, 40_000)),
            ),
            st.tuples(st.just(TRACES), st.sampled_from(KEYS), st.sampled_from((0, 10, 9_000))),
        ),
        max_size=6,
    ),
    max_size=6,
)


@settings(max_examples=80, deadline=None)
@given(calls=CALLS)
def test_of_each_key_the_newest_record_stands(store: DiskStore, calls: list[list[Written]]) -> None:
    txn = store.writing()
    try:
        records = DiskRecords(store, txn)
        newest = written(records, calls)
        fresh = DiskRecords(store, txn)

        for topic in (SESSIONS, WINDOWS):
            stands = {offset_of(key) for key, _ in txn.cursor(store.records[topic, 0])}
            assert stands == {offset for (of, _), offset in newest.items() if of == topic}
            for key in KEYS:
                found = txn.get(key_digest(key), db=store.keys[topic, 0])
                assert (found and int.from_bytes(found, "big")) == newest.get((topic, key))
        traces = [topic for call in calls for topic, *_ in call if topic == TRACES]
        assert len({offset_of(key) for key, _ in txn.cursor(store.records[TRACES, 0])}) == len(
            traces
        )
        for topic in (SESSIONS, WINDOWS, TRACES):
            assert records.used(topic) == fresh.used(topic)
    finally:
        txn.abort()


def test_what_is_deleted_is_not_used_any_more(store: DiskStore) -> None:
    txn = store.writing()
    try:
        records = DiskRecords(store, txn)
        empty = records.used(TRACES)
        written(records, [[(TRACES, b"a", 40_000)]])
        full = records.used(TRACES)
        records.delete(Position(TRACES, 0, 0))

        assert full - empty > 40_000
        assert records.used(TRACES) == empty
    finally:
        txn.abort()
