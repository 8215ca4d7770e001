"""What reaches a tool, in which order, and what is remembered of it."""

from collections.abc import Sequence
from typing import Any

import pytest

from collector.base.errors import Permanent, Retryable
from collector.base.http_client import HttpTarget
from collector.config.sinks import PhoenixSinkConfig
from collector.records.signal import SessionTraces
from collector.sinks.phoenix import PhoenixSink
from collector.sinks.port import Refused, pieces
from collector.sinks.writeback.batches import LARGEST, MOST, Missing, size_of
from collector.sinks.writeback.score import ScoreShape, WrittenScore, WrittenSubject, score_of
from collector.sinks.writeback.sink import WriteBack
from tests.support.clocks import SetClock
from tests.support.signals import hex_of, signal, skipped
from tests.support.sink_contract import published
from tests.support.tools.scores import published_signals

SHAPE = ScoreShape(sessions=frozenset({"session.id"}))


class FakeTool(WriteBack[PhoenixSinkConfig]):
    """Keeps a score per key, and knows every subject but those that are `unknown`."""

    name = "fake"
    shape = SHAPE

    def __init__(self, clock: SetClock) -> None:
        super().__init__(PhoenixSinkConfig(endpoint="http://127.0.0.1:9", wait=60.0), clock=clock)
        self.unknown: set[str] = set()
        self.bad: set[str] = set()
        self.away = False
        self.stands: dict[tuple[WrittenSubject, str], float | None] = {}
        self.requests: list[list[WrittenScore]] = []

    @classmethod
    def target(cls, settings: PhoenixSinkConfig) -> HttpTarget:
        return PhoenixSink.target(settings)

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        if self.away:
            raise Retryable("away")
        self.requests.append(list(scores))
        if missing := frozenset(e.subject for e in scores if e.subject.id in self.unknown):
            raise Missing(missing)
        if any(each.name in self.bad for each in scores):
            raise Permanent("bad")
        for each in scores:
            if each.is_gone:
                self.stands.pop((each.subject, each.name), None)
            else:
                self.stands[each.subject, each.name] = each.value


class WithoutPlaces(FakeTool):
    shape = SHAPE._replace(replaces=False)


class Stand:
    def __init__(self, kind: type[FakeTool] = FakeTool) -> None:
        self.clock = SetClock()
        self.tool = kind(self.clock)

    async def deliver(self, *signals: Any) -> None:
        await self.tool.deliver(published_signals(*signals))

    @property
    def values(self) -> list[float | None]:
        return [*self.tool.stands.values()]


async def test_of_one_place_in_a_batch_only_the_last_is_sent() -> None:
    stand = Stand()

    await stand.deliver(signal(score=0.1), signal(trace="t-2"), signal(score=0.9, revision=1))

    (request,) = stand.tool.requests
    assert [each.value for each in request] == [0.75, 0.9]


async def test_no_delete_is_sent_for_what_never_had_a_score() -> None:
    stand = Stand()

    await stand.deliver(skipped(), skipped(trace=None, revision=7))

    assert stand.tool.requests == []


async def test_a_score_is_taken_away_by_a_later_outcome_without_one() -> None:
    stand = Stand()
    await stand.deliver(signal(), signal(trace="t-2"))
    await stand.deliver(skipped())

    assert [key[0].id for key in stand.tool.stands] == [hex_of("t-2")]


async def test_after_a_restart_a_revision_without_a_score_takes_it_away() -> None:
    stand = Stand()

    await stand.deliver(skipped(revision=1))

    assert [each.is_gone for each in stand.tool.requests[0]] == [True]


async def test_a_session_that_went_on_leaves_the_trace_that_was_its_newest() -> None:
    stand = Stand()
    for newest in ("b", "c"):
        ends = SessionTraces(first="a", newest=newest)
        await stand.deliver(signal(trace=None, session_source="trace", traces=ends))

    assert [key[0] for key in stand.tool.stands] == [WrittenSubject("trace", "c")]


async def test_what_the_tool_does_not_have_waits_and_the_rest_goes_on() -> None:
    stand = Stand()
    stand.tool.unknown = {hex_of("t-1")}
    batch = published_signals(signal(), signal(trace="t-2"))

    await stand.tool.deliver(batch)
    await stand.tool.deliver(batch)  # as after a failed commit

    assert stand.values == [0.75]
    assert stand.tool.waiting == {batch[0].position}

    stand.tool.unknown.clear()
    await stand.tool.again()
    assert len(stand.values) == 1, "it is not due yet"
    stand.clock.now += 5.0
    await stand.tool.again()

    assert len(stand.values) == 2
    assert (stand.tool.waiting, stand.tool.unmatched) == (set(), 0)


async def test_a_later_score_of_a_subject_that_waits_goes_behind_it() -> None:
    """Else the earlier one would overwrite it when its time comes."""
    stand = Stand()
    stand.tool.unknown = {hex_of("t-1")}
    await stand.deliver(signal(score=0.1))
    stand.tool.unknown.clear()
    await stand.deliver(signal(score=0.9, revision=1))
    stand.clock.now += 5.0
    await stand.tool.again()

    assert stand.values == [0.9]


async def test_a_score_that_waits_and_is_taken_back_is_never_written() -> None:
    stand = Stand()
    stand.tool.unknown = {hex_of("t-1")}
    await stand.deliver(signal())
    await stand.deliver(skipped())

    assert stand.tool.waiting == set()


async def test_what_stays_unknown_is_unmatched_and_not_refused() -> None:
    stand = Stand()
    stand.tool.unknown = {hex_of("t-1")}
    await stand.deliver(signal())
    stand.clock.now += 60.0

    await stand.tool.again()

    assert (stand.tool.waiting, stand.tool.unmatched) == (set(), 1)


async def test_a_tool_that_is_away_keeps_everything_for_the_next_try() -> None:
    stand = Stand()
    stand.tool.unknown = {hex_of("t-1")}
    await stand.deliver(signal())
    stand.tool.unknown.clear()
    stand.tool.away = True
    stand.clock.now += 5.0

    with pytest.raises(Retryable):
        await stand.tool.again()
    with pytest.raises(Retryable):
        await stand.deliver(signal(trace="t-2"))
    assert len(stand.tool.waiting) == 1

    stand.tool.away = False
    await stand.tool.again()
    assert stand.values == [0.75]


async def test_what_the_tool_never_takes_is_refused_alone() -> None:
    stand = Stand()
    stand.tool.bad = {"bad"}
    batch = [signal(trace=f"t-{n}", evaluator="bad" if n == 5 else "good") for n in range(9)]

    with pytest.raises(Refused) as refused:
        await stand.deliver(*batch)

    assert [each.offset for each in refused.value.reasons] == [5]
    assert len(stand.values) == 8


async def test_what_is_no_signal_is_refused() -> None:
    stand = Stand()

    with pytest.raises(Refused) as refused:
        await stand.tool.deliver([published(0), published(1, b'{"no": "signal"}')])

    assert [each.offset for each in refused.value.reasons] == [1]
    assert stand.values == [0.75]


async def test_a_tool_without_places_gets_a_first_score_and_no_other() -> None:
    stand = Stand(WithoutPlaces)

    await stand.deliver(signal(score=0.1), signal(score=0.2, revision=1))
    await stand.deliver(signal(score=0.3, revision=2), skipped(revision=3))

    assert stand.values == [0.1]


def test_requests_are_bounded_in_scores_and_in_bytes() -> None:
    small, large = published_signals(signal(), signal(explanation="x" * 60_000))
    one, other = score_of(small, SHAPE), score_of(large, SHAPE._replace(explanation=60_000))

    def sizes(score: WrittenScore | None, count: int) -> list[int]:
        assert score is not None
        return [len(each) for each in pieces([score] * count, size_of, largest=LARGEST, most=MOST)]

    assert sizes(one, MOST + 1) == [MOST, 1]
    assert max(sizes(other, 40)) * 60_000 < LARGEST
    assert sum(sizes(other, 40)) == 40
