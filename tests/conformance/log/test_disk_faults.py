"""What only a log on a disk can meet: restarts, other processes, full disks, clocks that jump while it is away."""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest

from collector.errors import ConfigError, DataFolderInUse, LogFull, LogUnavailable
from collector.log import disk_writer
from collector.log.disk import DiskLog
from collector.log.disk_store import DiskStore
from collector.log.port import SIGNALS, SPANS, TRACES, Commit, New, Position
from collector.telemetry import Telemetry
from tests.support.log_contract import (
    GROUPS,
    all_of,
    assigned,
    at_end,
    fill,
    new,
    take,
)
from tests.support.owned_log_contract import dropped, lost, sample
from tests.support.ticking import SetClock

SMALL = 8 << 20
Open = Callable[..., Awaitable[DiskLog]]


@pytest.fixture
async def open_log(clock: SetClock, telemetry: Telemetry, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the log in `tmp_path`; whatever is open at the end is closed."""
    opened: list[DiskLog] = []

    async def open_one(max_size: int = SMALL, partitions: int = 1) -> DiskLog:
        log = await DiskLog.open(
            tmp_path,
            max_size=max_size,
            clock=clock,
            telemetry=telemetry,
            groups=GROUPS,
            partitions=partitions,
        )
        opened.append(log)
        return log

    yield open_one
    for log in opened:
        await log.close()


async def test_offsets_are_not_used_again_after_trim_and_restart(open_log: Open) -> None:
    log = await open_log()
    positions = await log.write([new(SPANS, b"%d" % n) for n in range(3)])
    end = positions[-1].offset + 1
    await log.write([], [Commit(group="assembly", topic=SPANS, partition=0, offset=end)])
    assert await all_of(log, SPANS) == []
    await log.close()

    log = await open_log()
    (position,) = await log.write([new(SPANS, b"next")])

    assert position.offset == end


async def test_log_time_does_not_go_back_over_a_restart(open_log: Open, clock: SetClock) -> None:
    log = await open_log()
    clock.now = 9_000.125
    await log.write([new(TRACES, b"before")])
    await log.close()

    clock.now = 100.0
    log = await open_log()
    reader = log.read("scoring", TRACES)
    await assigned(reader)
    batch = await at_end(reader)
    (position,) = await log.write([new(TRACES, b"after")])
    record = await log.get(position)

    assert batch.ends[0] == 9_000.125
    assert record is not None
    assert record.time == 9_000.125


async def test_commits_come_back_after_a_restart(open_log: Open) -> None:
    log = await open_log()
    commit = Commit(group="assembly", topic=SPANS, partition=0, offset=2, marks=1)
    await log.write([new(SPANS, b"%d" % n) for n in range(4)], [commit])
    await log.close()

    log = await open_log()
    reader = log.read("assembly", SPANS)
    owned = await assigned(reader)

    assert (owned[0].offset, owned[0].marks) == (2, 1)
    assert [record.value for record in await take(reader, 2)] == [b"2", b"3"]


async def test_a_second_log_on_the_folder_is_refused(open_log: Open, tmp_path: Path) -> None:
    await open_log()
    script = (
        "import sys; from pathlib import Path; from collector.log.lock_file import LockFile\n"
        "LockFile(Path(sys.argv[1]))"
    )

    with pytest.raises(DataFolderInUse, match=f"{tmp_path} is in use by process [0-9]+;"):
        await open_log()
    other = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert other.returncode == 1
    assert "DataFolderInUse" in other.stderr


async def test_a_lock_whose_holder_is_gone_does_not_matter(open_log: Open, tmp_path: Path) -> None:
    (tmp_path / "spanwise.lock").write_text("999999\n")

    log = await open_log()
    await log.write([new(TRACES, b"fine")])

    assert await all_of(log, TRACES) == [b"fine"]


async def test_another_number_of_partitions_is_a_clear_error(open_log: Open) -> None:
    await (await open_log()).close()

    with pytest.raises(ConfigError, match="holds a log of 1 partitions, not 4; use"):
        await open_log(partitions=4)

    await open_log()  # neither lock nor file is left held


async def test_a_folder_that_cannot_be_made_is_a_clear_error(
    clock: SetClock, telemetry: Telemetry, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="cannot be used"):
        await DiskLog.open(
            tmp_path / "file" / "log",
            max_size=SMALL,
            clock=clock,
            telemetry=telemetry,
            groups=GROUPS,
        )


async def test_a_file_that_is_no_log_is_a_clear_error(open_log: Open, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not LMDB's" * 4096)

    with pytest.raises(ConfigError, match="cannot be used"):
        await open_log()


async def test_a_smaller_log_trims_down_to_its_new_share(
    open_log: Open, telemetry: Telemetry
) -> None:
    log = await open_log(max_size=64 << 20)
    for _ in range(20):
        await log.write([new(TRACES, b"t" * 500_000)])
    await log.close()

    log = await open_log(max_size=16 << 20)
    await log.write([new(TRACES, b"newest")])

    kept = await all_of(log, TRACES)
    assert kept[-1] == b"newest"
    assert sum(map(len, kept)) <= 4 << 20
    assert dropped(telemetry, TRACES, "unread") == 21 - len(kept)


async def test_a_killed_reader_does_not_fill_the_map(open_log: Open, tmp_path: Path) -> None:
    """A foreign process reads, holds its snapshot and dies; 20 times the map goes through afterwards."""
    log = await open_log()
    await log.write([new(TRACES, b"t" * 100_000)])
    await log.close()
    reader = await _foreign_process(tmp_path, "txn = env.begin(); txn.get(b'x')")
    # Another process keeps LMDB's lock table alive, and with it the dead reader's slot.
    keeper = await _foreign_process(tmp_path, "pass")
    reader.kill()
    await reader.wait()

    log = await open_log()
    for _ in range(100):
        await log.write([new(TRACES, b"t" * 1_500_000)])
    keeper.kill()
    await keeper.wait()

    assert (tmp_path / "data.mdb").stat().st_size <= 2 * SMALL


async def _foreign_process(folder: Path, does: str) -> asyncio.subprocess.Process:
    script = (
        f"import lmdb, sys; env = lmdb.open({str(folder)!r}, map_size=1 << 30, max_dbs=30)\n"
        f"{does}\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=-1, stdout=-1
    )
    assert process.stdout is not None
    await process.stdout.readline()
    return process


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


async def test_a_full_disk_is_unavailable_and_passes(
    open_log: Open, caplog: pytest.LogCaptureFixture
) -> None:
    log = await open_log(max_size=256 << 20)
    await log.write([new(TRACES, b"before")])
    commit = Commit(group="scoring", topic=TRACES, partition=0, offset=1)

    with _files_end_at(2 << 20):
        for _ in range(3):
            with pytest.raises(LogUnavailable):
                await log.write([new(TRACES, b"x" * (4 << 20))], [commit])
    (position,) = await log.write([new(TRACES, b"after")])

    assert position.offset == 1
    assert await all_of(log, TRACES) == [b"before", b"after"]
    assert (await assigned(log.read("scoring", TRACES)))[0].offset is None
    assert [r.message for r in caplog.records if r.levelname == "ERROR"] == [
        "The log cannot be written to."
    ]


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
    """Shares keep it from happening; if it does, callers are told to come back."""
    monkeypatch.setattr("collector.log.disk_store._SLACK", -7 << 20)
    log = await open_log()

    calls = [[new(TRACES, b"x" * 1_500_000)], [new(TRACES, b"small")]]
    async with asyncio.TaskGroup() as tasks:
        written = [tasks.create_task(_error(log, call)) for call in calls]

    assert [type(task.result()) for task in written] == [LogFull, type(None)]
    assert await all_of(log, TRACES) == [b"small"]


async def test_a_full_map_empties_when_records_are_released(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write that finds it full takes what was released down with it; a later one must find the room."""
    monkeypatch.setattr("collector.log.disk_store._SLACK", -7 << 20)
    log = await open_log()
    written = await fill(log, SPANS, 50_000)

    log.release(written)
    outcomes = [await _error(log, [new(SPANS, b"s" * 50_000)]) for _ in range(5)]

    assert outcomes[-1] is None


async def _error(log: DiskLog, call: list[New]) -> Exception | None:
    try:
        await log.write(call)
    except LogFull as error:
        return error
    return None


async def test_an_environment_that_is_lost_is_opened_again(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB refuses everything after a meta page that could not be written, until it is opened anew."""
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


async def test_a_bug_in_the_writer_does_not_end_it(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await open_log()

    def fails(_: disk_writer.DiskTxn) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(disk_writer.DiskTxn, "save", fails)
        with pytest.raises(LogUnavailable):
            await log.write([new(TRACES, b"undone")])
    await log.write([new(TRACES, b"done")])

    assert await all_of(log, TRACES) == [b"done"]


async def test_waiting_calls_share_a_transaction(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await open_log()
    transactions: list[int] = []
    transact = disk_writer.DiskWriter._transact

    def counted(
        self: disk_writer.DiskWriter, calls: list[disk_writer.Call]
    ) -> tuple[list[disk_writer.Answer], list[disk_writer.Grown]]:
        transactions.append(len(calls))
        return transact(self, calls)

    monkeypatch.setattr(disk_writer.DiskWriter, "_transact", counted)
    async with asyncio.TaskGroup() as tasks:
        for n in range(100):
            tasks.create_task(log.write([new(TRACES, b"%d" % n)]))

    assert sum(transactions) == 100
    assert len([size for size in transactions if size]) < 20


async def test_writes_that_wait_at_close_are_answered(open_log: Open) -> None:
    log = await open_log()
    async with asyncio.TaskGroup() as tasks:
        written = [tasks.create_task(log.write([new(TRACES, b"%d" % n)])) for n in range(10)]
        await asyncio.sleep(0)
        await log.close()

    assert [task.result()[0].offset for task in written] == list(range(10))
    log = await open_log()
    assert await all_of(log, TRACES) == [b"%d" % n for n in range(10)]


async def test_sizes_are_told(open_log: Open, telemetry: Telemetry) -> None:
    log = await open_log()
    await fill(log, SPANS, 60_000)
    await log.close()
    await open_log()

    held = await asyncio.to_thread(_measured, telemetry)

    share = SMALL // 2
    assert sample(telemetry, "spanwise_log_limit_bytes", topic=SPANS) == share
    assert 0.7 * share < held <= 0.9 * share


def _measured(telemetry: Telemetry) -> float:
    """The writer's thread measures at most once a second."""
    for _ in range(1000):
        if held := sample(telemetry, "spanwise_log_bytes", topic=SPANS):
            return held
        time.sleep(0.01)
    raise AssertionError("never measured")


async def test_drops_are_not_counted_for_what_was_not_done(
    open_log: Open, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await open_log()
    await log.write([new(SIGNALS, b"g" * 400_000) for _ in range(2)])

    def fails(_: disk_writer.DiskTxn) -> None:
        raise lmdb.DiskError("mdb_put", 28)

    with monkeypatch.context() as patch:
        patch.setattr(disk_writer.DiskTxn, "save", fails)
        with pytest.raises(LogUnavailable):
            await log.write([new(SIGNALS, b"g" * 600_000)])

    assert lost(telemetry, "jsonl") == 0
    assert len(await all_of(log, SIGNALS)) == 2


async def test_every_commit_is_synced(open_log: Open) -> None:
    """Kills cannot show it: the page cache survives them."""
    flags = (await open_log())._store._env.flags()

    assert flags["sync"]
    assert flags["metasync"]
    assert not flags["map_async"]


async def test_a_release_of_what_never_was_disturbs_nobody(open_log: Open) -> None:
    log = await open_log()

    log.release([Position("nothing", 0, 1), Position(SPANS, 99, 1), Position(SPANS, 0, 1 << 40)])
    await log.write([new(SPANS, b"fine")])

    assert await all_of(log, SPANS) == [b"fine"]
