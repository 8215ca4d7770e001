"""Spans stay in the log as long as the trace records that name them; what somebody waits for is never dropped."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from collector.base.errors import LogFull, RecordTooLarge
from collector.base.telemetry import Telemetry
from collector.log.disk.disk_log import DiskLog
from collector.log.embedded.retention import Quotas
from collector.log.port import SPANS, TRACES, Position
from tests.conformance.log.conftest import SMALL
from tests.support.clocks import SetClock
from tests.support.log_steps import GROUPS, all_of, commit_of, commit_to, fill, new
from tests.support.owned_log_contract import dropped

SIZE = 60_000
POOL = SMALL * 3 // 4


async def opened(folder: Path, clock: SetClock, telemetry: Telemetry) -> DiskLog:
    return await DiskLog.open(
        folder,
        max_size=SMALL,
        clock=clock,
        telemetry=telemetry,
        groups=GROUPS,
        waits_for={TRACES: frozenset({"scoring"})},
    )


@pytest.fixture
async def log(clock: SetClock, telemetry: Telemetry, tmp_path: Path) -> AsyncIterator[DiskLog]:
    log = await opened(tmp_path, clock, telemetry)
    yield log
    await log.close()


def value(number: int, size: int = SIZE) -> bytes:
    return b"%06d" % number * (size // 6)


def number_of(stored: bytes) -> int:
    return int(stored[:6])


async def spans(log: DiskLog) -> list[int]:
    return [number_of(each) for each in await all_of(log, SPANS)]


async def write(log: DiskLog, clock: SetClock, topic: str, numbers: range) -> list[Position]:
    written: list[Position] = []
    for number in numbers:
        clock.now += 1
        written += await log.write([new(topic, value(number))])
    return written


async def test_one_trace_that_stays_open_does_not_hold_the_others(
    log: DiskLog, clock: SetClock
) -> None:
    """All but the first are released, in the order in which their traces close; the commit stays below all."""
    (first,) = await write(log, clock, SPANS, range(1))
    closed: list[Position] = []
    for number in range(1, 600, 3):
        closed += await write(log, clock, SPANS, range(number, number + 3))
        log.release(reversed(closed[-3:]))
    kept = await spans(log)

    assert kept[0] == first.offset == 0
    assert 40 < len(kept) <= POOL // SIZE
    assert kept[1:] == [*range(601 - len(kept) + 1, 601)][: len(kept) - 1]


async def test_traces_and_their_spans_expire_together(
    log: DiskLog, clock: SetClock, telemetry: Telemetry
) -> None:
    for number in range(300):
        (position,) = await write(log, clock, SPANS, range(number, number + 1))
        clock.now += 1
        done = [commit_of(each, TRACES, number + 1) for each in GROUPS[TRACES]]
        await log.write(
            [new(TRACES, value(number, 12_000))],
            [commit_of("assembly", SPANS, position.offset + 1), *done],
        )
    kept = await spans(log)
    traces = [number_of(each) for each in await all_of(log, TRACES)]

    assert 40 < len(kept) < 300
    assert kept == [*range(kept[0], 300)]
    assert traces == [*range(traces[0], 300)]
    assert abs(kept[0] - traces[0]) <= 1
    assert dropped(telemetry, TRACES, "expired") == traces[0]
    assert dropped(telemetry, SPANS, "expired") == kept[0]


async def test_what_was_released_before_a_crash_goes_once_the_commit_has_passed_it(
    log: DiskLog, clock: SetClock, telemetry: Telemetry, tmp_path: Path
) -> None:
    positions = await fill(log, SPANS, SIZE)
    log.release(positions[1:])
    await log.close()

    again = await opened(tmp_path, clock, telemetry)
    try:
        with pytest.raises(LogFull):
            await again.write([new(SPANS, value(0))])
        await commit_to(again, "assembly", SPANS, len(positions))
        assert len(await fill(again, SPANS, SIZE)) == len(positions)
    finally:
        await again.close()


async def test_a_trace_can_be_written_however_many_spans_wait(
    log: DiskLog, clock: SetClock, telemetry: Telemetry
) -> None:
    """Its spans are needed until it is: what spans leave must be enough for the largest trace."""
    await write(log, clock, TRACES, range(30))
    await log.write([], [commit_of(each, TRACES, 20) for each in GROUPS[TRACES]])
    await fill(log, SPANS, 4_000_000)
    await fill(log, SPANS, SIZE)
    held = len(await all_of(log, SPANS))
    largest = Quotas(SMALL).largest(TRACES)

    await log.write([], [commit_of(each, TRACES, 30) for each in GROUPS[TRACES]])
    await log.write([new(TRACES, b"t" * (largest - 100))])

    assert len(await all_of(log, SPANS)) == held
    assert dropped(telemetry, SPANS, "expired") == 0
    with pytest.raises(RecordTooLarge):
        await log.write([new(TRACES, b"t" * (largest + 100))])
