"""What a worker reads of the log that its parent writes: LMDB takes a file once per process, so a child reads."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from collector.base.errors import LogUnavailable
from collector.log.disk.map_reader import MapReader
from collector.log.port import SPANS, Range
from tests.conformance.log.test_disk_damage import overwrite, value_of
from tests.support.disk_log import Open
from tests.support.log_steps import new

CHILD = """
import json, sys
from pathlib import Path
from collector.base.errors import LogUnavailable
from collector.log.disk.map_reader import MapReader

reader = MapReader(Path(sys.argv[1]))
for line in sys.stdin:
    try:
        read = reader.read("spans", json.loads(line))
        said = [None if each is None else each.hex() for each in read]
    except LogUnavailable:
        said = "unavailable"
    print(json.dumps(said), flush=True)
"""


class Child:
    """A process with a reader."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def read(self, ranges: Sequence[Range]) -> list[bytes | None] | str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(ranges).encode() + b"\n")
        async with asyncio.timeout(30):
            said = json.loads(await self.process.stdout.readline())
        return said if said == "unavailable" else [each and bytes.fromhex(each) for each in said]


@asynccontextmanager
async def reading(folder: Path) -> AsyncGenerator[Child]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(folder), stdin=PIPE, stdout=PIPE
    )
    try:
        yield Child(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


@pytest.mark.process
async def test_a_child_reads_ranges_of_what_is_written_while_it_runs(
    open_log: Open, tmp_path: Path
) -> None:
    log = await open_log()
    await log.write([new(SPANS, value_of(0))])
    async with reading(tmp_path) as child:
        assert await child.read([(0, 0, 0, 20_008)]) == [value_of(0)]

        for number in range(1, 30):
            await log.write([new(SPANS, value_of(number))])
        ranges = [(0, 3, 5, 9000), (0, 3, 9000, 20_008), (0, 11, 0, 8), (0, 99, 0, 1)]
        read = await child.read([*ranges, (0, 0, 0, 20_009)])

    assert read == [value_of(3)[5:9000], value_of(3)[9000:], value_of(11)[:8], None, None]


@pytest.mark.process
async def test_a_child_follows_a_map_that_has_grown(open_log: Open, tmp_path: Path) -> None:
    log = await open_log()
    await log.write([new(SPANS, value_of(0))])
    async with reading(tmp_path) as child:
        assert await child.read([(0, 0, 0, 8)]) == [value_of(0)[:8]]
        size = log._store._map_size
        log._store._env.set_mapsize(size + (64 << 20))
        await log.write([new(SPANS, value_of(1))])

        assert await child.read([(0, 1, 0, 8)]) == [value_of(1)[:8]]


@pytest.mark.process
async def test_a_child_that_was_killed_while_it_read_holds_no_pages_once_readers_are_cleared(
    open_log: Open, tmp_path: Path
) -> None:
    log = await open_log()
    await log.write([new(SPANS, value_of(0))])
    hang = CHILD.replace(
        "for line in sys.stdin:",
        "env = reader._opened(); env.begin()\nprint(flush=True)\nfor line in sys.stdin:",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", hang, str(tmp_path), stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    process.kill()
    await process.wait()
    assert str(process.pid) in log._store._env.readers()

    log.clear_readers()

    assert str(process.pid) not in log._store._env.readers()


async def test_a_damaged_range_is_none_and_others_are_read(open_log: Open, tmp_path: Path) -> None:
    log = await open_log()
    for number in range(3):
        await log.write([new(SPANS, value_of(number))])
    await log.close()
    overwrite(tmp_path / "data.mdb", [1], whole=False)

    reader = MapReader(tmp_path)
    try:
        read = reader.read(SPANS, [(0, 0, 0, 9), (0, 1, 9_000, 12_000), (0, 2, 0, 9)])
    finally:
        reader.close()

    assert read == [value_of(0)[:9], None, value_of(2)[:9]]


def test_a_folder_without_a_log_is_unavailable(tmp_path: Path) -> None:
    reader = MapReader(tmp_path / "none")

    with pytest.raises(LogUnavailable):
        reader.read(SPANS, [(0, 0, 0, 1)])
