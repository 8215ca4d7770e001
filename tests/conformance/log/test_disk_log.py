"""The disk log keeps the contract; what it is after a restart, and folders that it does not open."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import ConfigError, DataFolderInUse, LogUnavailable
from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SPANS, TRACES, Lag, Log
from tests.conformance.log.conftest import SMALL, Open
from tests.support.clocks import SetClock
from tests.support.log_steps import GROUPS, all_of, commit_to, new
from tests.support.owned_log_contract import OwnedLogContract, dropped


class TestDiskLog(OwnedLogContract):
    async def opened(
        self, folder: Path, clock: SetClock, telemetry: Telemetry, **settings: Any
    ) -> Log:
        return await DiskLog.open(
            folder, clock=clock, telemetry=telemetry, groups=GROUPS, **settings
        )


async def test_a_disk_that_hangs_holds_up_one_look_for_lag_and_not_the_event_loop(
    open_log: Open,
) -> None:
    log = await open_log()
    (position,) = await log.write([new(SPANS, b"waits")])
    with log._store._lock:  # a page that never comes
        looking = asyncio.create_task(log.lag("assembly", SPANS))
        await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(LogUnavailable):
                async with asyncio.timeout(10):
                    await log.lag("assembly", SPANS)
    found = await looking

    assert found == Lag(1, 1000.0)
    await commit_to(log, "assembly", SPANS, position.offset + 1)
    assert await log.lag("assembly", SPANS) == Lag()


async def test_a_range_of_a_value_is_read_while_its_record_is_there(open_log: Open) -> None:
    log = await open_log()
    value = bytes(range(256)) * 80
    (position,) = await log.write([new(SPANS, value)])

    places = [(0, 5000, 9000), (0, 0, len(value)), (0, 0, len(value) + 1), (7, 0, 1)]
    read = await log.values_of(
        SPANS, [(0, position.offset + at, start, end) for at, start, end in places]
    )

    assert read == [value[5000:9000], value, None, None]


@pytest.mark.process
async def test_a_second_log_on_the_folder_is_refused(open_log: Open, tmp_path: Path) -> None:
    await open_log()
    script = (
        "import sys; from pathlib import Path; from collector.log.disk.store import LockFile\n"
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


async def test_a_smaller_log_trims_down_to_its_new_share(
    open_log: Open, telemetry: Telemetry
) -> None:
    log = await open_log(max_size=64 << 20)
    for _ in range(40):
        await log.write([new(TRACES, b"t" * 500_000)])
    await log.close()

    log = await open_log(max_size=16 << 20)
    await log.write([new(TRACES, b"newest")])

    kept = await all_of(log, TRACES)
    assert kept[-1] == b"newest"
    assert sum(map(len, kept)) <= 12 << 20
    assert dropped(telemetry, TRACES, "unread") == 41 - len(kept)


@pytest.mark.process
async def test_a_killed_reader_does_not_fill_the_map(open_log: Open, tmp_path: Path) -> None:
    """A foreign process reads, holds its snapshot and dies; 12 times the map goes through afterwards."""
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
        await log.write([new(TRACES, b"t" * 1_000_000)])
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
