"""Open traces are looked at beside everything else: what is written of them, when, and what is passed over."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial

import pytest

from collector.assembly import glances
from collector.base.clock import wall
from collector.base.errors import Retryable
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.log.port import TRACES
from collector.reading.port import GlanceJob, GlanceResult
from collector.records.traces import RunawayRecord, TraceRecord, decode_traces
from collector.service.rooms import Rooms
from tests.support.assembling import Site
from tests.support.faulty_log import FaultyLog
from tests.support.reading import ReadingWorkers
from tests.support.spans import child, root, trace_id


def site(**fields: object) -> Site:
    made = Site(workers=ReadingWorkers(suspicious=2))
    return replace(made, **fields) if fields else made


def written(of: Site) -> list[RunawayRecord | TraceRecord]:
    found = [decode_traces(each.value) for each in of.log.history(TRACES)]
    return [each for each in found if isinstance(each, RunawayRecord | TraceRecord)]


def suspects(of: Site) -> list[RunawayRecord]:
    return [each for each in written(of) if isinstance(each, RunawayRecord)]


async def test_an_open_trace_is_reported_as_it_stands_and_its_closing_comes_after() -> None:
    it = site()
    it.send(100, child(2))
    it.send(110, child(3))
    async with it.running():
        it.clock.now = 131
        await it.until(lambda: len(suspects(it)) == 1)
        it.send(140, root())
        it.clock.now = 147
        await it.until(lambda: bool(it.traces()))

    early, trace = written(it)
    assert isinstance(early, RunawayRecord)
    assert isinstance(trace, TraceRecord)
    subject = early.subject
    assert (subject.closed, subject.revision, subject.seen) == (None, 0, 110)
    assert not early.outcome.final
    assert (subject.trace_id, early.digest) == (trace.trace.trace_id, early.digest)
    assert early.digest != trace.trace.digest, "the root came later"
    assert it.count("trace_glances_total", result="suspect") == 1


@pytest.mark.parametrize("meanwhile", ["it closes", "another process takes its partition"])
async def test_a_glance_that_ends_too_late_says_nothing_and_delays_nothing(meanwhile: str) -> None:
    gate = asyncio.Event()
    it = site(workers=ReadingWorkers(suspicious=2, glance_gate=gate))
    it.send(100, child(2), child(3))
    async with it.running():
        it.clock.now = 131
        await it.polled()
        if meanwhile == "it closes":
            it.send(132, root())
            it.send(132, child(2, trace=2))
            it.clock.now = 139
            await it.until(lambda: len(it.traces()) == 1)
        else:
            it.log.readers[-1].revoke(0)
            await it.polled()
        gate.set()
        await it.until(lambda: it.count("trace_glances_total", result="suspect") == 1)
        await it.polled()

    assert suspects(it) == []


async def test_a_trace_that_late_spans_opened_again_is_reported_under_its_next_revision() -> None:
    it = site()
    it.send(100, child(2))
    async with it.running():
        it.clock.now = 401
        await it.until(lambda: len(it.traces()) == 1)
        it.send(410, child(3))
        it.clock.now = 441
        await it.until(lambda: bool(suspects(it)))

    (early,) = suspects(it)
    assert (early.subject.revision, early.subject.seen) == (1, 410)
    (first,) = it.traces()
    assert early.digest != first.trace.digest, "of all its spans"


async def test_under_pressure_glances_are_passed_over_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(glances, "WAITING", 2)
    it = site()
    for trace in range(1, 6):
        it.send(100, child(2, trace=trace), child(3, trace=trace))
    async with it.running():
        it.clock.now = 131
        await it.until(lambda: it.count("trace_glances_total", result="suspect") == 2)
        assert it.count("trace_glances_total", result="busy") == 3
        for trace in range(1, 6):
            it.send(140, child(4, trace=trace))
        it.clock.now = 161
        await it.until(lambda: it.count("trace_glances_total", result="suspect") == 4)


async def test_the_traces_with_the_most_new_spans_are_looked_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(glances, "WAITING", 3)
    workers = ReadingWorkers()
    it = site(workers=workers)
    for trace in range(1, 9):
        it.send(100, *(child(2 + number, trace=trace) for number in range(trace)))
    async with it.running():
        it.clock.now = 131
        await it.until(lambda: it.count("trace_glances_total", result="nothing") == 3)

    assert [each.trace_id for each in workers.glances] == [trace_id(n) for n in (8, 7, 6)]
    assert written(it) == [], "they are healthy"
    assert it.count("trace_glances_total", result="busy") == 5


@dataclass
class _Callers(ReadingWorkers):
    """The spans of trace 1 are model calls, of the others few are."""

    async def glance(self, job: GlanceJob) -> GlanceResult:
        await super().glance(job)
        return GlanceResult(call_share=1.0 if job.trace_id == trace_id(1) else 0.1)


async def test_new_model_calls_come_before_other_new_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = _Callers()
    it = site(workers=workers)
    for trace in range(1, 6):
        it.send(100, child(2, trace=trace))
    async with it.running():
        it.clock.now = 131
        await it.until(lambda: it.count("trace_glances_total", result="nothing") == 5)
        monkeypatch.setattr(glances, "WAITING", 1)
        for trace in range(1, 6):
            new = 3 if trace == 1 else 3 + trace
            it.send(140, *(child(3 + number, trace=trace) for number in range(new)))
        it.clock.now = 161
        await it.until(lambda: it.count("trace_glances_total", result="nothing") == 6)

    assert workers.glances[-1].trace_id == trace_id(1)


async def test_no_trace_is_passed_over_four_times_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glances, "WAITING", 2)
    workers = ReadingWorkers()
    it = site(workers=workers)
    traces, looks = range(1, 8), 0
    async with it.running():
        for number, (age, made) in enumerate({0: 2, 30: 2, 60: 2, 120: 7}.items()):
            for trace in traces:
                new = 5 if trace < 3 else 1
                spans = range(10 * number + 2, 10 * number + 2 + new)
                it.send(100 + age, *(child(each, trace=trace) for each in spans))
            it.clock.now = 100 + max(30, 2 * age) + 1
            looks += made
            await it.until(partial(_has_looked, it, looks))

    assert {each.trace_id for each in workers.glances[-7:]} == {trace_id(n) for n in traces}
    assert it.count("trace_glances_total", result="busy") == 3 * 5


def _has_looked(it: Site, times: int) -> bool:
    return it.count("trace_glances_total", result="nothing") == times


class _Deadly(ReadingWorkers):
    async def glance(self, job: GlanceJob) -> GlanceResult:
        self.glances.append(job)
        raise Retryable("the worker died")


async def test_a_trace_that_ends_its_worker_is_not_looked_at_again_and_still_closes() -> None:
    workers = _Deadly()
    it = site(workers=workers)
    it.send(100, child(2))
    async with it.running():
        it.clock.now = 131
        await it.until(lambda: it.count("trace_glances_total", result="failed") == 1)
        it.send(150, child(3))
        it.clock.now = 161
        await it.polled(5)
        it.send(170, root())
        it.clock.now = 177
        await it.until(lambda: len(it.traces()) == 1)

    assert len(workers.glances) == 1


@pytest.mark.parametrize("atomic", [True, False])
def test_a_crash_at_every_single_step_repeats_the_same_bytes_and_none_behind_the_closing(
    atomic: bool,
) -> None:
    def lived(step: int | None) -> Site:
        it = site(atomic=atomic)
        it.send(100, child(2), child(2, trace=2))
        it.send(110, child(3), child(3, trace=2))
        it.clock.now = 131
        asyncio.run(it.live(step, polls=8))
        it.send(135, child(4))
        it.clock.now = 161
        asyncio.run(it.live(step, polls=8))
        it.send(170, root())
        asyncio.run(it.once(1_000))
        return it

    wanted = _by_revision(lived(None))
    assert len(wanted) == 2
    for step in range(1, 30):
        it = lived(step)
        assert {
            key: found & wanted[key] == found for key, found in _by_revision(it).items()
        } == dict.fromkeys(wanted, True)
        _none_behind_its_closing(it)


def _by_revision(it: Site) -> dict[str, set[tuple[str, float, int]]]:
    """What was said of each trace: digest, time, revision."""
    found: dict[str, set[tuple[str, float, int]]] = {trace_id(n).hex(): set() for n in (1, 2)}
    for each in suspects(it):
        subject = each.subject
        found[subject.trace_id or ""].add((each.digest, subject.seen, subject.revision))
    return found


def _none_behind_its_closing(it: Site) -> None:
    closed: set[tuple[str | None, int]] = set()
    for each in written(it):
        if isinstance(each, TraceRecord):
            closed.add((each.trace.trace_id, each.revision))
        else:
            assert (each.subject.trace_id, each.subject.revision) not in closed


@pytest.mark.parametrize(("enabled", "glance"), [(True, 30.0), (False, None)])
def test_without_the_evaluator_no_open_trace_is_looked_at(
    enabled: bool, glance: float | None
) -> None:
    config = Config.model_validate({"evaluators": {"runaway": {"enabled": enabled}}})
    rooms = Rooms(
        config,
        plan_from(config),
        log=FaultyLog(),
        workers=ReadingWorkers(),
        telemetry=Telemetry(),
        clock=wall,
    )

    assert rooms.assembler()._windows.trace.glance == glance
