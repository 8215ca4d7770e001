"""What one write transaction remembers of the log is what stands in it (else: tests/property/log/test_log_model.py)."""

from pathlib import Path

from collector.log.disk.store import DiskStore
from collector.log.disk.transaction import DiskRecords
from collector.log.port import SESSIONS, TRACES, WINDOWS, Position, Record


def test_what_is_used_is_remembered_until_something_is_written_or_deleted(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, max_size=8 << 20, partitions=1)
    txn = store.writing()
    try:
        records = DiskRecords(store, txn)
        empty = records.used(TRACES)
        for offset, (topic, key, size) in enumerate(
            [
                *((SESSIONS, b"a", 5_000), (SESSIONS, b"b", 40_000), (WINDOWS, b"a", 10)),
                *((SESSIONS, b"a", 40_000), (SESSIONS, b"b", 0), (TRACES, b"a", 40_000)),
            ]
        ):
            position = Position(topic, 0, offset)
            new = Record(position=position, key=key, value=b"v" * size, time=1.0)
            records.need(new)
            records.append([new])
            fresh = DiskRecords(store, txn)
            assert [records.used(each) for each in (SESSIONS, WINDOWS, TRACES)] == [
                fresh.used(each) for each in (SESSIONS, WINDOWS, TRACES)
            ]
        records.delete(Position(TRACES, 0, 5))

        assert records.used(TRACES) == empty
    finally:
        txn.abort()
        store.close()
