"""Which turns, sessions, evaluators and costs the gauges and counters count, and when the newest score came."""

from collections.abc import Iterator
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.config.tree import AgentWindow
from collector.export.label_counts import CountedIds
from collector.records.signal import Signal
from tests.support.publisher import Publisher
from tests.support.signals import BASE, failed, new, signal, skipped


@pytest.mark.parametrize("order", [*permutations(range(3))])
async def test_the_newest_turn_of_a_session_counts_whatever_the_order(
    order: tuple[int, ...],
) -> None:
    """All turns arrived at one log time: their starts, which travel as a header, tell them apart."""
    publisher = Publisher()
    turns = [(signal("s-1", f"t-{n}", score=n / 4), 1_000 + n) for n in range(3)]

    await publisher.log.write([new(turns[n][0], start=turns[n][1]) for n in order])
    await publisher.step()

    assert publisher.value("window_mean_ratio") == pytest.approx(0.5)


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


async def test_names_of_external_evaluators_take_no_place_of_ours() -> None:
    publisher = Publisher()
    loud = [
        signal(trace=f"t{n}-{repeat}", evaluator=f"x{n}", method="external")
        for n in range(70)
        for repeat in range(5)
    ]
    await publisher.publish(signal(trace="rare"))
    await publisher.publish(*loud)
    await publisher.publish(signal(trace="rare again"))

    def counted(evaluator: str) -> float | None:
        return publisher.value("evaluations_total", evaluator=evaluator)

    assert (counted("tool_correctness"), counted("x0")) == (2, 5)
    assert counted("_other") == 30, "64 of the 70 have a label"


async def test_versions_are_compared_by_an_external_evaluator_of_traces_too() -> None:
    publisher = Publisher()
    await publisher.publish(
        *(
            signal(f"s-{n}", f"t{n}", evaluator=name, method=method, agent_version=str(n % 2))
            for n in range(6)
            for name, method in (("tone", "external"), ("tool_correctness", "deterministic"))
        )
    )

    agent = ("support-bot", "planner")
    found = publisher.exporter.versions(agent, "tone")
    assert {version: len(each.entries) for version, each in found.items()} == {"0": 3, "1": 3}
    assert publisher.exporter.versions(agent, "tool_correctness") == {}


FAMILY = "cost_per_success_usd"


def costing(name: str, usd: float | None, score: float) -> Iterator[Signal]:
    if usd is not None:
        yield signal(
            name,
            None,
            score=None,
            evaluator="cost",
            outcome="measured",
            threshold=None,
            metadata={"total": usd, "mean": usd},
        )
    yield signal(name, None, score=score)


FAILED_TOO = [("a", 0.02, 0.9), ("b", 0.03, 0.1), ("c", 0.01, 0.8)]
LATEST = [("a", 9.0, 0.9), ("b", 0.02, 0.1), ("c", 0.03, 0.9), ("b", 0.05, 0.9)]


@pytest.mark.parametrize(
    ("sessions", "most", "usd"),
    [
        pytest.param(FAILED_TOO, 200, 0.03, id="failed sessions cost the successful ones"),
        pytest.param([("a", 0.02, 0.9), ("b", None, 0.9)], 200, 0.02, id="one of unknown cost"),
        pytest.param([("a", 0.02, 0.1)], 200, None, id="without a success there is no series"),
        pytest.param(LATEST, 2, 0.04, id="the newest count, each with its latest signals"),
    ],
)
async def test_what_a_success_costs(
    sessions: list[tuple[str, float | None, float]], most: int, usd: float | None
) -> None:
    publisher = Publisher(limits=AgentWindow(sessions=most))

    for each in sessions:
        await publisher.publish(*costing(*each))

    found = publisher.value(FAMILY, service="support-bot", agent="planner")
    assert found == (usd if usd is None else pytest.approx(usd))


async def test_a_restart_keeps_it() -> None:
    publisher = Publisher()
    await publisher.publish(*costing("a", 0.02, 0.9), *costing("b", 0.03, 0.1))
    await publisher.exporter.finish()

    after = publisher.successor()
    await after.step()
    shown = after.value(FAMILY, service="support-bot", agent="planner")
    await after.publish(*costing("c", 0.01, 0.9))

    assert shown == 0.05
    assert after.value(FAMILY, service="support-bot", agent="planner") == pytest.approx(0.03)


def test_the_newest_ids_are_known_and_at_most_twice_as_many() -> None:
    ids = CountedIds(100)

    assert all(ids.add(f"{number:032x}") for number in range(1_000))
    assert not any(ids.add(f"{number:032x}") for number in range(900, 1_000))
    assert all(ids.add(f"{number:032x}") for number in range(800))


def test_an_id_that_is_met_again_is_not_forgotten() -> None:
    ids = CountedIds(10)
    ids.add("often")

    for number in range(1_000):
        ids.add(str(number))
        assert not ids.add("often")


@given(st.lists(st.text(max_size=2), max_size=60))
def test_before_anything_is_forgotten_an_id_is_new_once(met: list[str]) -> None:
    ids, known = CountedIds(64), set[str]()

    for each in met:
        assert ids.add(each) is (each not in known)
        known.add(each)


async def test_a_session_that_went_on_elsewhere_leaves_its_weight_to_an_earlier_one() -> None:
    """It keeps its place among those that are held, so that it is the same whenever it went."""
    went = [
        signal("s-1", None, score=score, agent=agent, revision=at, final=False, at=BASE + 9 + at)
        for at, (agent, score) in enumerate((("planner", 0.1), ("router", 0.9)))
    ]
    others = [
        signal(f"s-{n}", None, score=n / 10, agent="planner", at=BASE + n) for n in range(2, 6)
    ]

    seen: list[object] = []
    for order in ([*went, *others], [*others, *went], [*others[:3], *went, others[3]]):
        publisher = Publisher(limits=AgentWindow(sessions=2))
        await publisher.publish(*order)
        assert publisher.value("window_samples", agent="planner") == 2
        assert publisher.value("agent_reliability_ratio", agent="planner") == pytest.approx(0.45)
        seen.append(publisher.gauges())

    assert all(each == seen[0] for each in seen)
