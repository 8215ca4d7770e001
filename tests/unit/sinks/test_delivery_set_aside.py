"""A sink that sets signals aside: others pass them, and the commit stays at the oldest of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from collector.base.errors import Retryable
from collector.log.port import Position
from collector.records.signal_batch import Published
from tests.support.clocks import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.signals import new, signal
from tests.support.sink_contract import count, delivering


@dataclass
class AsideSink:
    """Sets aside what has one of the offsets `unknown`; `again` takes what is no longer one of them."""

    name: ClassVar[str] = "aside"
    unknown: set[int] = field(default_factory=set[int])
    hopeless: set[int] = field(default_factory=set[int])
    away: bool = False
    got: list[int] = field(default_factory=list[int])
    waiting: set[Position] = field(default_factory=set[Position])
    unmatched: int = 0

    async def deliver(self, signals: Sequence[Published]) -> None:
        for each in signals:
            if each.position.offset in self.unknown | self.hopeless:
                self.waiting.add(each.position)
            else:
                self.got.append(each.position.offset)

    async def again(self) -> None:
        if self.away:
            raise Retryable("set to fail", after=0.05)
        for position in [*self.waiting]:
            if position.offset in self.hopeless:
                self.unmatched += 1
            elif position.offset not in self.unknown:
                self.got.append(position.offset)
            else:
                continue
            self.waiting.discard(position)

    def forget(self, partition: int) -> None:
        self.waiting = {each for each in self.waiting if each.partition != partition}

    async def close(self, deadline: float) -> None:
        pass


async def written(log: FaultyLog, count: int, start: int = 0) -> None:
    await log.write([new(signal(trace=f"t-{number}")) for number in range(start, start + count)])


def committed(log: FaultyLog) -> int:
    return log.commits[-1].offset if log.commits else 0


async def test_the_commit_stays_at_the_oldest_until_it_is_taken() -> None:
    log, sink = FaultyLog(), AsideSink(unknown={2})
    await written(log, 5)
    async with delivering(log, sink) as telemetry:
        await eventually(lambda: sink.got == [0, 1, 3, 4])
        await written(log, 5, start=5)
        await eventually(lambda: len(sink.got) == 9)
        await eventually(lambda: committed(log) == 2)

        sink.unknown.clear()
        await written(log, 1, start=10)
        await eventually(lambda: committed(log) == 11)

    assert sorted(sink.got) == list(range(11))
    assert (count(telemetry, "acked"), count(telemetry, "unmatched")) == (11, 0)


async def test_a_restart_reads_what_was_set_aside_again() -> None:
    log, sink = FaultyLog(), AsideSink(unknown={1})
    await written(log, 4)
    async with delivering(log, sink):
        await eventually(lambda: committed(log) == 1)

    after = AsideSink()
    async with delivering(log, after):
        await eventually(lambda: committed(log) == 4)

    assert after.got == [1, 2, 3]


async def test_what_is_given_up_is_unmatched_and_neither_acked_nor_lost() -> None:
    log, sink = FaultyLog(), AsideSink(hopeless={0, 3})
    await written(log, 5)
    async with delivering(log, sink) as telemetry:
        await eventually(lambda: committed(log) == 5)

    assert count(telemetry, "unmatched") == 2
    assert (count(telemetry, "acked"), count(telemetry, "lost")) == (3, 0)


async def test_what_is_set_aside_delays_no_other_while_it_fails() -> None:
    log, sink = FaultyLog(), AsideSink(unknown={0}, away=True)
    await written(log, 2)
    async with delivering(log, sink) as telemetry:
        await eventually(lambda: sink.got == [1])
        await written(log, 3, start=2)
        await eventually(lambda: sink.got == [1, 2, 3, 4])

        sink.away = False
        sink.unknown.clear()
        await eventually(lambda: committed(log) == 5)

    assert count(telemetry, "acked") == 5
