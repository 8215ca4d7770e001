"""Headline gauges do not depend on the order in which signals arrive, while agents and their versions change.

Signals of one session stand in one partition and come in order; those of different sessions interleave in any way.
"""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from tests.support.examples import examples
from tests.support.publisher import Publisher
from tests.support.signals import BASE, covered, signal

LIMITS = AgentWindow(sessions=1, version_silence=4)
Turn = tuple[str, str | None, float | None]
"""Agent, version, score; None: too little of the session was seen."""
turns = st.tuples(
    st.sampled_from(["planner", "planner", "router", "writer"]),
    st.sampled_from([None, None, "1", "2"]),
    st.none() | st.integers(0, 10).map(lambda n: n / 10),
)


@st.composite
def published(draw: st.DrawFn) -> list[list[Signal]]:
    """For each session its signals, each of a later turn; moments of different sessions may be the same."""
    sessions: list[list[Signal]] = []
    for name in ("s-1", "s-2", "s-3", "s-4", "s-5"):
        at = BASE + draw(st.integers(0, 10))
        signals: list[Signal] = []
        for number, (agent, version, score) in enumerate(draw(st.lists(turns, max_size=3))):
            at += draw(st.integers(0, 5))
            signals.append(
                signal(
                    name,
                    None,
                    at=at,
                    score=score,
                    outcome="scored" if score is not None else "skipped",
                    coverage=covered(3, 3 if score is not None else 1),
                    agent=agent,
                    agent_version=version,
                    revision=number,
                    final=False,
                )
            )
        sessions.append(signals)
    return sessions


def headlines(publisher: Publisher) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        key: value
        for key, value in publisher.gauges().items()
        if not key[0].startswith(("spanwise_drift", "spanwise_objective"))
    }


async def headlines_of(
    order: list[Signal], limits: AgentWindow, restart: int | None = None
) -> object:
    publisher = Publisher(limits=limits)
    for number, each in enumerate(order):
        await publisher.publish(each)
        if number == restart:
            await publisher.exporter.finish()
            publisher = publisher.successor()
            await publisher.step()
    return headlines(publisher)


def interleaved(data: st.DataObject, sessions: list[list[Signal]]) -> list[Signal]:
    turn_of = data.draw(st.permutations([n for n, each in enumerate(sessions) for _ in each]))
    left = [list(each) for each in sessions]
    return [left[session].pop(0) for session in turn_of]


@given(published(), st.data())
@settings(deadline=None, max_examples=examples(300))
def test_sessions_may_interleave_in_any_way(
    sessions: list[list[Signal]], data: st.DataObject
) -> None:
    one = [each for signals in sessions for each in signals]
    other = interleaved(data, sessions)
    restart = data.draw(st.none() | st.integers(0, 14), label="restart after")

    assert asyncio.run(headlines_of(other, LIMITS, restart)) == asyncio.run(
        headlines_of(one, LIMITS)
    )


@given(published(), st.data())
@settings(deadline=None, max_examples=examples(100))
def test_signals_of_a_session_may_come_in_any_order_while_its_windows_hold_it(
    sessions: list[list[Signal]], data: st.DataObject
) -> None:
    one = [each for signals in sessions for each in signals]
    other = data.draw(st.permutations(one))

    limits = AgentWindow(version_silence=4)

    assert asyncio.run(headlines_of(other, limits)) == asyncio.run(headlines_of(one, limits))


@given(published())
@settings(deadline=None, max_examples=examples(100))
def test_a_session_counts_once_under_the_agent_and_version_that_its_latest_score_names(
    sessions: list[list[Signal]],
) -> None:
    publisher = Publisher()

    async def publish() -> None:
        await publisher.publish(*(each for signals in sessions for each in signals))

    asyncio.run(publish())

    expected: dict[tuple[str, str], list[float]] = {}
    for signals in filter(None, sessions):
        latest = signals[-1]
        key = (latest.agent, latest.agent_version or "")
        if latest.score is not None:
            expected.setdefault(key, []).append(latest.score)
    found = {
        labels[1:]: round(value, 6)
        for (name, labels), value in publisher.gauges().items()
        if name == "spanwise_agent_reliability_ratio"
    }
    assert found == {key: round(sum(each) / len(each), 6) for key, each in expected.items()}
