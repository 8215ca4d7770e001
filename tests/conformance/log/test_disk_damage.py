"""A disk log whose file was overwritten: each damaged record is named once, all others are read, writing goes on."""

import random
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from collector.base.errors import DataDamaged
from collector.base.telemetry import Telemetry
from collector.log.port import CLOSINGS, SPANS, TRACES
from tests.support.disk_log import Open
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
