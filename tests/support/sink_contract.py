"""What every sink promises (collector/sinks/port.py), against the real other side."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from collector.base.errors import Retryable
from collector.base.retry import Backoff
from collector.base.telemetry import Telemetry
from collector.log.port import SIGNALS, Position, Record
from collector.records.signal_batch import Published, signals_in
from collector.sinks.delivery import Delivery
from collector.sinks.families import SinkFamilies
from collector.sinks.port import Refused, Sink
from tests.support.clocks import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.signals import BASE, encode, headers, signal
from tests.support.signals import new as new_record


class FarEnd(Protocol):
    """Where a sink delivers to, in the hands of a test."""

    def sink(self) -> Sink:
        """A new sink, as after a restart."""
        ...

    async def received(self) -> list[str]:
        """The ids of the signals that are there, in order, repeats included."""
        ...

    async def break_off(self) -> None:
        """From now on nothing can be delivered."""
        ...

    async def mend(self) -> None:
        """From now on it can."""
        ...

    def poison(self) -> bytes:
        """A value that this other side never takes."""
        ...


EXTERNAL: Mapping[str, Any] = {
    "evaluator": "ragas_faithfulness",
    "method": "external",
    "metadata": {"name": "Ragas Faithfulness", "value": 0.75, "source": "POST /v1/evaluations"},
    "revision": 1_700_000_000_000_000,
}


def published(number: int, json: bytes | None = None) -> Published:
    """The signal number `number` of the topic, each third of an external evaluator; `json` in place of its own."""
    fields = EXTERNAL if number % 3 == 2 else dict[str, Any]()
    what = signal(f"s-{number % 3}", f"t-{number}", at=BASE + number, **fields)
    record = Record(
        position=Position(SIGNALS, 0, number),
        key=what.session_id.encode(),
        value=encode(what),
        time=BASE + number,
        headers=headers(what),
    )
    (found,) = signals_in(record)
    return found if json is None else replace(found, json=json)


def ids(signals: Sequence[Published]) -> list[str]:
    return [each.header.id for each in signals]


class SinkContract:
    """Subclass with a fixture `far_end`."""

    async def test_what_was_delivered_is_there_in_order(self, far_end: FarEnd) -> None:
        sink = far_end.sink()
        signals = [published(number) for number in range(100)]

        await sink.deliver(signals[:60])
        await sink.deliver(signals[60:])

        assert await far_end.received() == ids(signals)
        await sink.close(5.0)

    async def test_an_outage_is_retryable_and_loses_nothing(self, far_end: FarEnd) -> None:
        sink = far_end.sink()
        signals = [published(number) for number in range(30)]
        await sink.deliver(signals[:10])
        await far_end.break_off()

        for _ in range(2):
            async with asyncio.timeout(20):
                with pytest.raises(Retryable):
                    await sink.deliver(signals[10:])
        await far_end.mend()
        await until_delivered(sink, signals[10:])

        assert list(dict.fromkeys(await far_end.received())) == ids(signals)
        await sink.close(5.0)

    async def test_a_sink_that_starts_during_an_outage_delivers_after_it(
        self, far_end: FarEnd
    ) -> None:
        await far_end.break_off()
        sink = far_end.sink()
        async with asyncio.timeout(20):
            with pytest.raises(Retryable):
                await sink.deliver([published(1)])

        await far_end.mend()
        await until_delivered(sink, [published(1)])

        assert set(await far_end.received()) == set(ids([published(1)]))
        await sink.close(5.0)

    async def test_what_is_refused_for_ever_is_named_and_the_rest_delivered(
        self, far_end: FarEnd
    ) -> None:
        sink = far_end.sink()
        signals = [published(0), published(1, far_end.poison()), published(2), published(3)]

        with pytest.raises(Refused) as refused:
            await sink.deliver(signals)

        assert [position.offset for position in refused.value.reasons] == [1]
        expected = ids([published(0), published(2), published(3)])
        assert list(dict.fromkeys(await far_end.received())) == expected
        await sink.close(5.0)

    async def test_close_is_bounded_while_the_other_side_is_away(self, far_end: FarEnd) -> None:
        sink = far_end.sink()
        await sink.deliver([published(0)])
        await far_end.break_off()
        with pytest.raises(Retryable):
            await sink.deliver([published(1)])

        async with asyncio.timeout(8):
            await sink.close(3.0)

        await far_end.mend()
        after = far_end.sink()
        await until_delivered(after, [published(1)])
        assert set(await far_end.received()) == set(ids([published(0), published(1)]))
        await after.close(5.0)

    async def test_every_signal_of_the_log_is_acked_once_through_an_outage(
        self, far_end: FarEnd
    ) -> None:
        log = FaultyLog()
        found = [signal(f"s-{n % 5}", f"t-{n}", at=BASE + n) for n in range(200)]
        await log.write([new_record(each) for each in found[:100]])

        async with delivering(log, far_end.sink()) as telemetry:
            await committed(log, 100)
            await far_end.break_off()
            await log.write([new_record(each) for each in found[100:]])
            await asyncio.sleep(0.2)
            await far_end.mend()
            await committed(log, 200)

        assert list(dict.fromkeys(await far_end.received())) == [each.id for each in found]
        assert count(telemetry, "acked") == 200
        assert count(telemetry, "lost") == 0


@asynccontextmanager
async def delivering(
    log: FaultyLog, sink: Sink, *, grace: float = 2.0, within: float = 60
) -> AsyncGenerator[Telemetry]:
    """A delivery at work, for so many seconds; stopped, and its end awaited, on leaving."""
    delivery, telemetry = a_delivery(log, sink, grace=grace)
    stopping = asyncio.Event()
    async with asyncio.timeout(within), asyncio.TaskGroup() as tasks:
        tasks.create_task(delivery.run(stopping))
        yield telemetry
        stopping.set()


def a_delivery(
    log: FaultyLog, sink: Sink, *, drains: bool = False, grace: float = 2.0
) -> tuple[Delivery, Telemetry]:
    telemetry = Telemetry()
    delivery = Delivery(
        log=log,
        sink=sink,
        telemetry=telemetry,
        backoff=Backoff(first=0.05, longest=0.2),
        grace=grace,
        drains=drains,
    )
    return delivery, telemetry


def count(telemetry: Telemetry, result: str) -> float:
    return sum(
        sample.value
        for metric in SinkFamilies(telemetry).signals.collect()
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.labels["result"] == result
    )


def outbox(telemetry: Telemetry, sink: str) -> tuple[float | None, float | None]:
    """The outbox gauges: records waiting, log time of the oldest."""
    names = ("spanwise_outbox_records", "spanwise_outbox_oldest_timestamp_seconds")
    records, oldest = (telemetry.registry.get_sample_value(name, {"sink": sink}) for name in names)
    return records, oldest


async def committed(log: FaultyLog, offset: int) -> None:
    """Wait until the one sink has committed up to `offset`."""
    await eventually(lambda: any(each.offset >= offset for each in log.commits))


async def until_delivered(sink: Sink, signals: Sequence[Published]) -> None:
    """What `Delivery` does after an outage."""
    async with asyncio.timeout(30):
        while True:
            try:
                await sink.deliver(signals)
            except Retryable:
                await asyncio.sleep(0.05)
            else:
                return
