"""When the newest score of an agent came: what AgentScoresStale asks."""

from tests.support.publisher import Publisher
from tests.support.signals import failed, signal, skipped


async def test_the_newest_score_counts_and_nothing_that_has_no_score() -> None:
    publisher = Publisher()
    clock = publisher.log.clock
    began = clock.now
    await publisher.publish(signal(trace="a", score=0.8))
    clock.now += 60
    await publisher.publish(signal(trace="b", score=0.7))
    clock.now += 1800
    await publisher.publish(skipped(trace="c"), failed(trace="d"))

    stale = publisher.value("last_score_timestamp_seconds")
    publisher = publisher.successor()
    await publisher.step()
    after_restart = publisher.value("last_score_timestamp_seconds")
    await publisher.publish(signal(trace="e", score=0.9))

    assert stale == after_restart == began + 60
    assert publisher.value("last_score_timestamp_seconds") == clock.now
