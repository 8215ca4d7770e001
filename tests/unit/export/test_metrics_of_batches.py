"""The metrics say the same of signals whether each has a record or all of a step have one."""

import asyncio

from collector.log.port import SIGNALS
from collector.records.signal import Signal
from collector.records.signal_batch import batch_records, made, single_record
from tests.support.publisher import Publisher
from tests.support.signals import BASE, failed, signal, skipped


def step(number: int) -> list[Signal]:
    """Of one session, of two traces (the second was scored again) and of the session."""
    name, at = f"s-{number}", BASE + number
    return [
        signal(name, f"{name}-a", at=at, score=number % 5 / 4),
        signal(
            name,
            f"{name}-a",
            at=at,
            evaluator="confidence",
            score=0.5,
            threshold=None,
            success=None,
        ),
        signal(name, f"{name}-b", at=at, score=1.0, revision=2, success=None),
        failed(name, f"{name}-b", at=at, evaluator="task_completion", method="llm_judge"),
        signal(
            name, f"{name}-b", at=at, evaluator="runaway", score=0.0, final=False, explanation="ü"
        ),
        signal(name, None, at=at, final=False, agent_version=str(number % 2)),
        skipped(name, None, at=at, evaluator="agent_consistency"),
    ]


async def published(*, joined: bool) -> Publisher:
    publisher = Publisher()
    await publisher.step()
    for number in range(30):
        ready = [made(each, first=True, start=10**18 + number) for each in step(number)]
        await publisher.log.write(
            [*batch_records(ready)] if joined else [single_record(each) for each in ready]
        )
        await publisher.step()
    return publisher


def shown(publisher: Publisher) -> bytes:
    return publisher.telemetry.exposition("text/plain")[0]


def test_the_metrics_of_a_record_of_many_are_those_of_its_signals() -> None:
    alone, together = asyncio.run(published(joined=False)), asyncio.run(published(joined=True))

    assert alone.value("evaluations_total", evaluator="confidence") is None  # no pass or fail
    assert alone.value("runaway_traces", reason="repeated_calls") == 30
    assert alone.value("window_samples", evaluator="tool_correctness") == 30
    assert shown(together) == shown(alone)


def test_a_subject_whose_time_cannot_be_read_takes_no_other_with_it() -> None:
    async def walk() -> Publisher:
        publisher = Publisher()
        await publisher.step()
        odd = signal("s-1", "t-1", time="yesterday")
        found = [made(each, first=True) for each in (odd, signal("s-1", None))]
        await publisher.log.write([*batch_records(found)])
        await publisher.step()
        return publisher

    publisher = asyncio.run(walk())

    assert publisher.value("poison_records_total", topic=SIGNALS) == 1
    assert publisher.value("window_samples", evaluator="agent_reliability") == 1
