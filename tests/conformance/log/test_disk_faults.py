"""A disk log whose disk, map or neighbours fail."""

from __future__ import annotations

import asyncio
import resource
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import lmdb
import pytest

from collector.base.errors import LogFull, LogUnavailable
from collector.base.telemetry import Telemetry
from collector.base.watch import PartEnded
from collector.log.disk import writer
from collector.log.disk.disk_log import DiskLog
from collector.log.disk.store import DiskStore
from collector.log.port import SIGNALS, SPANS, TRACES, New
from tests.conformance.log.conftest import SMALL, Open
from tests.support.log_steps import all_of, assigned, commit_of, fill, new
from tests.support.owned_log_contract import dropped, sample


async def test_the_file_stays_within_its_map_whatever_the_sizes(
    open_log: Open, tmp_path: Path
) -> None:
    """Many times the map, sizes mixed, spans released out of order: pages must be found again."""
    log = await open_log()
    held: list[list[int]] = []
    for n in range(250):
        size = (300, 2_500, 17_000, 90_000, 400_000)[n % 5]
        signals = [new(SIGNALS, b"g" * (size % 5_000)) for _ in range(10)]
        spans = await log.write([new(SPANS, b"s" * size), new(TRACES, b"t" * size), *signals])
        held.append([spans[0].offset])
        if len(held) > 8:
            offset = held.pop((n * 7) % 8)[0]
            log.release([spans[0]._replace(offset=offset)])

    assert (tmp_path / "data.mdb").stat().st_size <= 2 * SMALL


async def test_who_writes_is_refused_once_the_writers_thread_has_ended(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its callers waited for ever, with every probe green."""
    log = await open_log()
    await log.write([new(TRACES, b"before")])

    def fails(_: float) -> None:
        raise MemoryError

    monkeypatch.setattr(writer.time, "sleep", fails)
    async with asyncio.timeout(10):
        for _ in range(2):
            with pytest.raises(LogUnavailable, match="thread that writes the log has ended"):
                await log.write([new(TRACES, b"x")])
        with pytest.raises(PartEnded):
            await log.watch()
        assert await all_of(log, TRACES) == [b"before"]
        await log.close()


async def test_a_full_disk_is_unavailable_and_passes(
    open_log: Open, caplog: pytest.LogCaptureFixture
) -> None:
    log = await open_log(max_size=256 << 20)
    await log.write([new(TRACES, b"before")])
    commit = commit_of("scoring", TRACES, 1)

    with _files_end_at(2 << 20):
        for _ in range(3):
            with pytest.raises(LogUnavailable):
                await log.write([new(TRACES, b"x" * (4 << 20))], [commit])
    (position,) = await log.write([new(TRACES, b"after")])

    assert position.offset == 1
    assert await all_of(log, TRACES) == [b"before", b"after"]
    assert (await assigned(log.read("scoring", TRACES)))[0].offset is None
    (said,) = [r.message for r in caplog.records if r.levelname == "ERROR"]
    assert said.startswith("The log cannot be written to: mdb_")


@contextmanager
def _files_end_at(size: int) -> Generator[None]:
    """What a full disk does: writes beyond fail. The signal that would come with it is ignored by Python."""
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_map_is_full_and_small_calls_go_on(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares keep it from happening; if it does, callers are asked to come back."""
    monkeypatch.setattr("collector.log.disk.store._SLACK", -7 << 20)
    log = await open_log()

    calls = [[new(SPANS, b"x" * 1_500_000)], [new(SPANS, b"small")]]
    async with asyncio.TaskGroup() as tasks:
        written = [tasks.create_task(_error(log, call)) for call in calls]

    assert [type(task.result()) for task in written] == [LogFull, type(None)]
    assert await all_of(log, SPANS) == [b"small"]


async def test_a_full_map_empties_when_records_are_released(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write that finds it full takes what was released down with it; a later one must find the room."""
    monkeypatch.setattr("collector.log.disk.store._SLACK", -15 << 19)
    log = await open_log()
    written = await fill(log, SPANS, 50_000)

    log.release(written)
    outcomes = [await _error(log, [new(SPANS, b"s" * 50_000)]) for _ in range(5)]

    assert outcomes[-1] is None
    refused = 0
    for _ in range(200):  # more than the map may grow by
        try:
            log.release(await log.write([new(SPANS, b"s" * 50_000)]))
        except LogFull:
            refused += 1
    assert refused < 20


async def _error(log: DiskLog, call: list[New]) -> Exception | None:
    try:
        await log.write(call)
    except LogFull as error:
        return error
    return None


async def test_an_environment_that_is_lost_is_opened_again(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB refuses everything after a meta page that could not be written, until it is opened again."""
    log = await open_log()
    await log.write([new(TRACES, b"before")])
    begin, lost_env = DiskStore.writing, log._store._env

    def panics(store: DiskStore) -> lmdb.Transaction[bytes]:
        if store._env is lost_env:
            raise lmdb.PanicError("mdb_txn_begin", -30795)
        return begin(store)

    monkeypatch.setattr(DiskStore, "writing", panics)
    with pytest.raises(LogUnavailable):
        await log.write([new(TRACES, b"lost")])
    (position,) = await log.write([new(TRACES, b"after")])

    assert position.offset == 1
    assert await all_of(log, TRACES) == [b"before", b"after"]


async def test_waiting_calls_share_a_transaction(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await open_log()
    transact = Mock(wraps=log._writer._transact)
    monkeypatch.setattr(log._writer, "_transact", transact)
    async with asyncio.TaskGroup() as tasks:
        for n in range(100):
            tasks.create_task(log.write([new(TRACES, b"%d" % n)]))

    sizes = [len(each.args[0]) for each in transact.call_args_list]
    assert sum(sizes) == 100
    assert len([size for size in sizes if size]) < 20


async def test_spans_go_before_what_evaluation_writes_and_transactions_stay_small(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender waits for the transaction under way and for its own, whatever else is to be written."""
    log = await open_log(max_size=256 << 20)
    transactions: list[list[str]] = []
    begun, go_on = threading.Event(), threading.Event()
    transact = log._writer._transact

    def noted(
        calls: list[writer.WriteCall],
    ) -> tuple[list[writer.Answer], list[writer.Appended]]:
        if calls:
            transactions.append([call.records[0].topic for call in calls])
            begun.set()
            assert go_on.wait(10)
        return transact(calls)

    monkeypatch.setattr(log._writer, "_transact", noted)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(log.write([new(TRACES, b"under way")]))
        assert await asyncio.to_thread(begun.wait, 10)
        for n in range(5):
            tasks.create_task(log.write([new(TRACES, b"%d" % n * 600_000)]))
        tasks.create_task(log.write([new(SPANS, b"awaited")]))
        await asyncio.sleep(0)
        go_on.set()

    assert transactions == [[TRACES], [SPANS, TRACES, TRACES], [TRACES, TRACES], [TRACES]]


@pytest.mark.parametrize("size", [1, 400_000], ids=["together", "more than one transaction takes"])
async def test_writes_that_wait_at_close_are_answered(open_log: Open, size: int) -> None:
    log = await open_log(max_size=256 << 20)
    values = [b"%d" % n * size for n in range(10)]
    async with asyncio.TaskGroup() as tasks:
        written = [tasks.create_task(log.write([new(TRACES, value)])) for value in values]
        await asyncio.sleep(0)
        await log.close()

    assert [task.result()[0].offset for task in written] == list(range(10))
    log = await open_log(max_size=256 << 20)
    assert await all_of(log, TRACES) == values


async def test_sizes_are_reported(open_log: Open, telemetry: Telemetry) -> None:
    log = await open_log()
    await fill(log, SPANS, 60_000)
    await log.close()
    await open_log()

    share = SMALL * 3 // 4
    held = await asyncio.to_thread(_measured, telemetry, 0.7 * share)

    assert sample(telemetry, "spanwise_log_limit_bytes", topic=SPANS) == share
    assert held <= 0.9 * share


def _measured(telemetry: Telemetry, least: float) -> float:
    """The writer's thread measures at most once a second, also while the log is being filled."""
    for _ in range(1000):
        if (held := sample(telemetry, "spanwise_log_bytes", topic=SPANS)) > least:
            return held
        time.sleep(0.01)
    raise AssertionError(f"never {least} bytes")


@pytest.mark.parametrize("error", [ZeroDivisionError(), lmdb.DiskError("mdb_put", 28)])
async def test_a_transaction_that_fails_ends_no_writer_and_counts_no_drops(
    open_log: Open, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    log = await open_log()
    await log.write([new(SIGNALS, b"g" * 400_000) for _ in range(2)])

    def fails(_: writer.DiskTxn) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(writer.DiskTxn, "save", fails)
        with pytest.raises(LogUnavailable):
            await log.write([new(SIGNALS, b"g" * 600_000)])
    await log.write([new(TRACES, b"done")])

    assert dropped(telemetry, SIGNALS, "share") == 0
    assert len(await all_of(log, SIGNALS)) == 2
    assert await all_of(log, TRACES) == [b"done"]


async def test_every_commit_is_synced(open_log: Open) -> None:
    """Kills cannot show it: the page cache survives them."""
    flags = (await open_log())._store._env.flags()

    assert flags["sync"]
    assert flags["metasync"]
    assert not flags["map_async"]
