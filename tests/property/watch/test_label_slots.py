"""Slots of label values under any arrivals: their number is bounded, and who reports most has one."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from collector.base.slots import FEW, WAITING, Slots
from collector.base.telemetry import MAX_SERVICES, Telemetry
from collector.config.tree import AgentWindow
from collector.export.families import AgentFamilies
from collector.records.signal_batch import made
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.targets import MAX_AGENTS, MAX_EVALUATORS, Targets
from tests.support.examples import USUAL, examples
from tests.support.signals import BASE, signal

LIMIT = 4
names = st.one_of(st.integers(0, 9).map(str), st.integers(0, 10**6).map(str))
gaps = st.sampled_from([0.0, 0.0, 0.0, 1.0, 600.0, 7200.0, -30.0])
arrivals = st.lists(st.tuples(names, gaps), max_size=300)


@given(arrivals)
@settings(deadline=None, max_examples=examples(USUAL))
def test_no_more_names_are_held_or_counted_than_there_is_room_for(
    found: list[tuple[str, float]],
) -> None:
    slots: Slots[str] = Slots(LIMIT)
    now = BASE
    for name, gap in found:
        now += gap
        before = set(slots)
        loser = slots.count(name, now)

        lost = before - set(slots)
        assert lost == ({loser} if loser is not None else set())
        held, waiting = slots.state()
        assert len(held) <= LIMIT
        assert len(waiting) <= WAITING
        assert not dict(held).keys() & dict(waiting).keys()


@given(arrivals, st.integers(1, 8), st.booleans())
@settings(deadline=None, max_examples=examples(USUAL))
def test_who_reports_most_has_a_slot_after_a_bounded_number_of_traces(
    before: list[tuple[str, float]], every: int, fresh: bool
) -> None:
    """One of `every` traces is its own, the others are each of another service; whatever came before."""
    slots: Slots[str] = Slots(LIMIT * 4)
    now = BASE
    for name, gap in before:
        now += abs(gap)
        slots.count(name, now)
    junk = (f"junk-{n}" for n in itertools.count())

    # Of what came before the least slot has at most its share; more than twice that is clearly more.
    bound = FEW + 2 * (len(before) // (LIMIT * 4) + 1) * 2
    for _ in range(bound):
        for _ in range(every - 1):
            slots.count(next(junk) if fresh else "one", now)
        slots.count("steady", now)

    assert "steady" in set(slots)


@given(st.lists(st.tuples(names, st.integers(0, 3 * 10**4)), max_size=60), st.data())
@settings(deadline=None, max_examples=examples(USUAL))
def test_volumes_do_not_depend_on_the_order_of_arrival(
    found: list[tuple[str, int]], data: st.DataObject
) -> None:
    """The sums are floats: equal to a millionth of an event."""

    def volumes(order: list[tuple[str, int]]) -> dict[str, float]:
        slots: Slots[str] = Slots(1_000)
        for name, at in order:
            slots.count(name, BASE + at)
        return {name: round(tally.volume, 6) for name, tally in slots.state()[0]}

    assert volumes(data.draw(st.permutations(found))) == volumes(found)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), min_size=50, max_size=400))
@settings(deadline=None, max_examples=examples(20))
def test_the_number_of_series_is_bounded_whatever_arrives(found: list[tuple[int, int]]) -> None:
    telemetry = Telemetry(CollectorRegistry())
    closed = telemetry.counter("traces_closed", "Traces.", "service reason")
    families = AgentFamilies(telemetry)
    targets = Targets(AgentWindow(), lambda _: 0.9)
    for offset, (agent, evaluator) in enumerate(found * 3):
        now = BASE + offset
        what = signal(
            "s", f"t-{offset}", agent=f"a-{agent}", service=f"b-{agent}", evaluator=f"e-{evaluator}"
        )
        loser = targets.count_trace(what.service, what.agent, now)
        if loser is not None:
            families.forget_agent(*loser)
        ready = made(what, first=True)
        admitted = targets.admit(what.service, what.agent, what.evaluator, what.scope, now)
        if admitted.evicted_evaluator is not None:
            families.forget_evaluator(admitted.evicted_evaluator)
        place = targets.place(admitted.labels, what.service, what.evaluator)
        targets.take(place, Incoming(ready.subject, now), ready.header, 0, offset)
        families.count_first(admitted.labels, ready.subject, ready.header, 0.0, histogram=True)
        telemetry.count_service(what.service, now)
        closed.labels(telemetry.service(what.service), "idle").inc()

    assert len({each.labels[:2] for each in targets}) <= MAX_AGENTS + 1
    assert len({each.labels.evaluator for each in targets}) <= MAX_EVALUATORS + 1
    samples = [s for metric in telemetry.registry.collect() for s in metric.samples]
    counted = [s for s in samples if s.name == "spanwise_evaluations_total"]
    assert len({s.labels["agent"] for s in counted}) <= MAX_AGENTS + 1
    assert len({s.labels["evaluator"] for s in counted}) <= MAX_EVALUATORS + 1
    services = [s for s in samples if s.name == "spanwise_traces_closed_total"]
    assert len(services) <= MAX_SERVICES + 1
