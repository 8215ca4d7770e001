"""Which scores enter the comparison with the past, when, and what the gauges say of it."""

from collections import deque
from typing import Any, Literal

import pytest

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from collector.records.signal_batch import made
from collector.watch.comparisons import HOLD
from collector.watch.drift.detectors import DriftDetectors, is_fed
from collector.watch.entered import MOST, TAIL, Entered
from collector.watch.settling import MAX_SETTLING, digest_of
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.target import Labels
from tests.support.drift import held, same, settling
from tests.support.faulty_log import FaultyLog, unavailable
from tests.support.publisher import SHORT, Publisher
from tests.support.signals import BASE, covered, failed, new, signal, skipped
from tests.support.table import for_each

SETTLE = AgentWindow().settle


def session(name: str = "s-1", score: float | None = 0.8, **fields: Any) -> Signal:
    return signal(name, None, score=score, **{"final": False, **fields})


class Stand:
    """Drift detectors of one partition, whose log time the test sets."""

    def __init__(self) -> None:
        self.drops = DriftDetectors(SHORT, settle=SETTLE)
        self.drops.log_time.own(0)
        self.offset = 0

    def say(self, said: Signal, at: float, *, first: bool = True) -> bool:
        labels = Labels(said.service, said.agent, said.evaluator, said.scope)
        self.offset += 1
        ready = made(said, first=first)
        seen = Incoming(ready.subject, BASE + at)
        if not is_fed(ready.header, is_trace=seen.is_trace):
            return True
        return self.drops.offer(labels, seen, ready.header, 0, self.offset)

    def pass_time(self, partition: int, at: float) -> None:
        """The partition has no more records from before then."""
        deque(self.drops.entering({partition: BASE + at}), maxlen=0)

    def entered(self, at: float) -> int:
        """How many have entered when log time has passed `at`."""
        self.pass_time(0, at)
        return sum(each.settling.entered.count for each in self.drops)


OPEN, AGAIN = session(revision=1), session(revision=2)
LOW = session(score=None, outcome="skipped", reason="low_coverage", revision=2)
SAYS: dict[str, tuple[list[tuple[Signal, float]], list[tuple[float, int]]]] = {
    # At the very moment at which it has settled a record could still come.
    "has been quiet": (
        [(OPEN, 0), (AGAIN, 200)],
        [(SETTLE + 1, 0), (200 + SETTLE, 0), (200 + SETTLE + 0.001, 1)],
    ),
    "closes": ([(session(final=True), 0)], [(0.001, 1)]),
    "is repeated": ([(OPEN, 0), (OPEN, 200)], [(SETTLE + 1, 1)]),
    "is too little seen": ([(OPEN, 0), (LOW, 10)], [(9 * SETTLE, 0)]),
    "has a score of a part": (
        [(OPEN, 0), (session(score=0.9, coverage=covered(4, 1), revision=2), 10)],
        [(9 * SETTLE, 0)],
    ),
    "has failed": (
        [(OPEN, 0), (failed("s-1", None, final=False, revision=2), 10)],
        [(9 * SETTLE, 0)],
    ),
}


@for_each("name", SAYS)
def test_a_session_enters_once_it_has_settled_with_a_score(name: str) -> None:
    stand, (said, entered) = Stand(), SAYS[name]
    for each, at in said:
        stand.say(each, at)

    assert [(at, stand.entered(at)) for at, _ in entered] == entered


FED = [
    *(
        ("session", name, "formula")
        for name in ("agent_reliability", "agent_consistency", "work_baseline", "task_agreement")
    ),
    ("session", "conversation_quality", "llm_judge"),
    ("session", "professional_tone", "llm_judge"),
    ("session", "tone", "external"),
    *(("trace", name, "deterministic") for name in ("tool_correctness", "confidence")),
    ("trace", "tone", "external"),
    ("trace", "task_completion", "llm_judge"),
]
NOT_FED = [
    ("session", "repeated_calls", "formula"),
    ("session", "latency", "formula"),
    ("session", "professional_tone", "deterministic"),
    ("trace", "loop_detection", "deterministic"),
    ("trace", "helpfulness", "llm_judge"),
]


@for_each(("scope", "evaluator", "method"), [*FED, *NOT_FED])
def test_which_evaluators_are_fed(
    scope: Literal["session", "trace"], evaluator: str, method: str
) -> None:
    stand = Stand()
    trace = "t-1" if scope == "trace" else None
    stand.say(signal("s-1", trace, evaluator=evaluator, method=method), 0)

    assert stand.entered(1) == ((scope, evaluator, method) in FED)


def test_a_record_that_is_read_again_does_not_enter_though_its_session_is_forgotten() -> None:
    """The group's commit was lost, and the log is read from its beginning."""
    stand = Stand()
    stand.say(session("old", final=True), 0)
    assert stand.entered(1) == 1
    (watch,) = stand.drops
    for subject in range(MOST):
        watch.settling.entered.add(subject)
    stand.say(session("new", final=True), 2)

    stand.offset = 0
    stand.say(session("old", final=True), 0)

    assert stand.entered(9) == MOST + 2


def test_a_partition_that_another_process_keeps_holds_nothing_up_for_long() -> None:
    stand = Stand()
    stand.drops.log_time.own(1)
    stand.pass_time(1, 0)
    stand.drops.log_time.lose(1)
    stand.say(session(final=True), 10)

    assert stand.entered(100) == 0
    assert stand.entered(10 + HOLD) == 0
    assert stand.entered(11 + HOLD) == 1


@pytest.mark.parametrize("earlier", [0, 1])
async def test_after_all_partitions_were_lost_their_records_are_waited_for_again(
    earlier: int,
) -> None:
    """The state could not be stored: it is that of the commit again, and so is log time."""
    log = FaultyLog(partitions=2)
    publisher = Publisher(log=log, drops=SHORT)
    publisher.exporter._max_records = 1
    await publisher.step()
    names = ["b", "a"]
    for partition, name in zip((earlier, 1 - earlier), names, strict=True):
        await log.write([new(session(name, final=True), partition=partition)])
        log.clock.now += 1
    for _ in range(4):
        await publisher.step()
    before = held(publisher.exporter._drops)
    log.write_failures = unavailable(2)
    (reader,) = (each for each in log.readers if each.topic == "signals")

    for partition in (0, 1):
        reader.revoke(partition)
    await publisher.step()
    for partition in (0, 1):
        reader.assign(partition)
    for _ in range(4):
        await publisher.step()

    assert log.write_failures == []
    assert same(held(publisher.exporter._drops), before)
    (watch,) = publisher.exporter._drops
    assert list(watch.settling.entered._subjects) == [digest_of(each) for each in names]


def test_a_trace_enters_at_its_first_final_score_alone() -> None:
    stand = Stand()
    stand.say(signal(trace="a", final=False), 0)
    assert stand.entered(1) == 0
    stand.say(signal(trace="a"), 2)
    stand.say(signal(trace="a"), 3)  # scoring wrote it again after a crash
    stand.say(signal(trace="a", revision=1), 4, first=False)
    stand.say(signal(trace="b", score=None, outcome="failed"), 4)
    stand.say(skipped(trace="c"), 5)

    assert stand.entered(9) == 1


def test_what_settles_is_bounded() -> None:
    stand = Stand()

    taken = [stand.say(session(f"s-{n}"), 0) for n in range(MAX_SETTLING + 1)]

    assert taken == [True] * MAX_SETTLING + [False]
    (watch,) = stand.drops
    assert len(settling(watch)) == MAX_SETTLING


def test_who_entered_is_bounded_and_read_back() -> None:
    entered = Entered()
    part = b""
    for subject in range(MOST + 10):
        entered.add(subject)
        due = entered.due()
        assert len(entered.newest) <= 8 * TAIL
        if due is not None:
            part = due
            entered.written(due)

    restored = Entered(entered.count, entered.newest, part)

    assert 9 not in restored
    assert 10 in restored
    assert list(restored._subjects) == list(range(10, MOST + 10))
    assert list(Entered(3, b"", part)._subjects) == []  # the part of another life
