"""A disk log whose file was overwritten, and what a worker reads of the log that its parent writes.

Each damaged record is named once, all others are read, writing goes on.
"""

import asyncio
import json
import random
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from collector.base.errors import DataDamaged, LogUnavailable
from collector.base.telemetry import Telemetry
from collector.log.disk.map_reader import MapReader
from collector.log.port import CLOSINGS, SPANS, TRACES, Range
from tests.conformance.log.conftest import Open
from tests.support.log_steps import all_of, commit_to, new, reading, take, values

PAGE = 4096
COUNT = 60
VALUE = 4
"""LMDB's flag of a page that holds a value."""
SIZE = 20_000


def value_of(number: int) -> bytes:
    return b"%08d" % number + random.Random(number).randbytes(SIZE)


def overwrite(file: Path, numbers: list[int], *, whole: bool) -> None:
    """Random bytes over a page in the middle of each record's value, with or without the page's header."""
    content = bytearray(file.read_bytes())
    for number in numbers:
        text = value_of(number)[10_000:10_040]
        at = content.index(text)
        while (
            content[at // PAGE * PAGE + 10] != VALUE
        ):  # pages of trees hold old bytes where they are free
            at = content.index(text, at + 1)
        at = at // PAGE * PAGE
        begin = at if whole else at + 16
        content[begin : at + PAGE] = random.Random(number).randbytes(at + PAGE - begin)
    file.write_bytes(content)


@pytest.mark.parametrize("whole", [False, True])
async def test_a_damaged_record_is_named_once_and_passed_over(
    open_log: Open,
    tmp_path: Path,
    telemetry: Telemetry,
    caplog: pytest.LogCaptureFixture,
    whole: bool,
) -> None:
    log = await open_log()
    for number in range(COUNT):
        await log.write([new(TRACES, value_of(number))])
    await log.close()
    damaged = [0, 17, 18, COUNT - 1]
    overwrite(tmp_path / "data.mdb", damaged, whole=whole)

    log = await open_log()
    sound = [value_of(n) for n in range(COUNT) if n not in damaged]
    for group in ("scoring", "api"):
        reader = await reading(log, group, TRACES)
        assert values(await take(reader, len(sound))) == sound
    assert await all_of(log, TRACES) == sound

    said = [r.getMessage() for r in caplog.records if "passed over" in r.getMessage()]
    assert [int(re.findall(r"offset (\d+)", line)[0]) for line in said] == damaged
    assert all(line.startswith("A record of `traces`, partition 0, ") for line in said)
    assert poison(telemetry.registry) == len(damaged)


async def test_damaged_records_are_trimmed_like_others(open_log: Open, tmp_path: Path) -> None:
    log = await open_log()
    for number in range(COUNT):
        await log.write([new(CLOSINGS, value_of(number))])
    await log.close()
    overwrite(tmp_path / "data.mdb", [3, 4, 30], whole=True)

    log = await open_log()
    await commit_to(log, "assembly", SPANS, 0, metadata=COUNT)
    await log.write([new(CLOSINGS, b"next")])
    await log.close()

    log = await open_log()
    assert await all_of(log, CLOSINGS) == [b"next"]


async def test_a_file_that_is_cut_off_or_no_log_is_one_line(open_log: Open, tmp_path: Path) -> None:
    log = await open_log()
    for number in range(COUNT):
        await log.write([new(TRACES, value_of(number))])
    await log.close()
    file = tmp_path / "data.mdb"
    whole = file.read_bytes()

    for damaged in (whole[: len(whole) // 2], whole[: len(whole) // 50], b"not LMDB's" * 4096):
        file.write_bytes(damaged)
        with pytest.raises(DataDamaged) as raised:
            await open_log()

        (line,) = str(raised.value).splitlines()
        assert line.startswith(f"{file} is damaged: ")
        assert line.endswith("move it away to begin with an empty log")


def poison(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("spanwise_poison_records_total", {"topic": TRACES})


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
async def child_of(folder: Path) -> AsyncGenerator[Child]:
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
    async with child_of(tmp_path) as child:
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
    async with child_of(tmp_path) as child:
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
