"""Services take turns with the judge, and the room's rules of order and crash hold all the same."""

from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.config.tree import BudgetConfig, JudgeConfig
from collector.judging import dispatcher
from collector.judging.dispatcher import SubjectQueue
from collector.log.port import TRACES
from collector.records.sessions import session_key
from tests.support.clocks import SetClock, eventually
from tests.support.judging_stand import Stand, turn

ONE = JudgeConfig(model="m", concurrency=1)
SLOW = JudgeConfig(model="m", concurrency=1, max_lag=600.0, budget=BudgetConfig(calls_per_minute=1))


def put(stand: Stand, service: str, numbers: Iterable[int]) -> None:
    stand.put(*map(turn, numbers), key=session_key(service, "s"))


def services(stand: Stand) -> list[str]:
    return [job.service for job in stand.judges.jobs]


def verdicts(stand: Stand) -> set[str]:
    return {each.subject for each in stand.verdicts}


def ids(numbers: Iterable[int]) -> set[str]:
    return {turn(number).trace_id for number in numbers}


async def test_no_commit_passes_a_subject_that_waits() -> None:
    """A crash while one service's verdicts are out of turn: every subject has its verdict after the next start."""
    first = Stand(config=ONE)
    first.judges.answers = 3
    put(first, "greedy", range(5))
    put(first, "modest", range(5, 7))
    async with first.running():
        await first.judges.has(4)
    assert len(first.verdicts) == 3
    assert "modest" in services(first)[:3]
    committed = first.log.committed("judging", TRACES, 0).offset or 0
    waiting = ids(range(7)) - verdicts(first)
    oldest = min(int(each, 16) for each in waiting)
    assert committed <= oldest

    second = Stand(first.log)
    await second.drain()
    assert verdicts(second) == ids(range(7))
    assert len(second.verdicts) == 7


def is_done_with(stand: Stand, count: int) -> bool:
    """Whether so many records are committed, a second of the log's clock later."""
    assert isinstance(stand.clock, SetClock)
    stand.clock.now += 1
    return (stand.log.committed("judging", TRACES, 0).offset or 0) >= count


async def test_what_comes_too_late_while_it_waits_is_not_asked_for() -> None:
    stand = Stand(config=ONE)
    assert isinstance(stand.clock, SetClock)
    stand.judges.answers = 0
    put(stand, "bot", range(4))
    async with stand.running():
        await stand.judges.has(1)
        stand.clock.now += ONE.max_lag
        await stand.judges.answer()
        await eventually(lambda: is_done_with(stand, 4))
    assert len(stand.judges.jobs) == 1


@pytest.mark.parametrize("floods", [1, 30])
async def test_a_flood_beyond_what_can_be_judged_in_time_holds_no_other_back(
    monkeypatch: pytest.MonkeyPatch, floods: int
) -> None:
    """Of more than the budget allows within `judge.max_lag` the oldest are passed over, live."""
    monkeypatch.setattr(dispatcher, "READ_AHEAD", 20)
    stand = Stand(config=SLOW)
    stand.judges.answers = 1
    put(stand, "greedy", range(20 * floods))
    put(stand, "modest", [10_000])
    async with stand.running():
        await stand.judges.has(2)
        await eventually(lambda: "modest" in stand.budget.waiting)
        for jobs in (3, 4):
            await stand.judges.answer()
            await stand.judges.has(jobs)
    assert "modest" in services(stand)


async def test_offline_everything_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "READ_AHEAD", 20)
    stand = Stand(config=SLOW)
    put(stand, "bot", range(100))
    await stand.drain()

    assert verdicts(stand) == ids(range(100))
    assert stand.judges.compared[-1] == ["answer 96", "answer 97", "answer 98"], "out of the log"


async def test_what_waits_of_a_partition_that_is_taken_away_is_not_judged_here() -> None:
    stand = Stand(config=ONE)
    stand.judges.answers = 0
    put(stand, "bot", range(3))
    async with stand.running():
        await stand.judges.has(1)
        await stand.room.revoke(0)
        await stand.judges.answer()
        await eventually(lambda: len(stand.verdicts) == 1)
        assert not stand.budget.waiting
    assert len(stand.judges.jobs) == 1


# --- the queue: nothing that waits is forgotten, and a service's own order is that of the log -------------------------


def always(_: str) -> bool:
    return True


def queue_of(services: str, concurrency: int = 1) -> SubjectQueue[str]:
    queue: SubjectQueue[str] = SubjectQueue(concurrency)
    for number, service in enumerate(services):
        queue.add(service, f"{service}{number}")
    return queue


def order_of(queue: SubjectQueue[str]) -> list[str]:
    """What is begun when each subject ends before the next begins."""
    begun: list[str] = []
    while subject := queue.begin(always):
        begun.append(subject)
        queue.end(subject[0])
    return begun


def test_services_take_turns_whatever_their_order() -> None:
    assert order_of(queue_of("aaaaab")) == ["a0", "b5", "a1", "a2", "a3", "a4"]
    assert order_of(queue_of("aaabbc")) == ["a0", "b3", "c5", "a1", "b4", "a2"]


def test_the_oldest_of_the_service_with_the_most_waiting_is_let_go() -> None:
    queue = queue_of("abbb")
    assert queue.let_go(4) is None
    assert queue.let_go(3) == "b1"
    assert len(queue) == 3


def test_what_is_gone_is_dropped() -> None:
    queue = queue_of("abab")
    assert queue.drop(lambda each: each in {"a0", "a2", "b1"}) == ["a0", "a2", "b1"]
    assert order_of(queue) == ["b3"]
    assert len(queue) == 0


@given(
    st.lists(st.one_of(st.sampled_from("abc"), st.sampled_from(["begin", "end"])), max_size=80),
    st.integers(1, 3),
    st.sets(st.sampled_from("abc")),
)
def test_everything_is_begun_once_in_its_service_s_order_and_within_the_places(
    steps: list[str], concurrency: int, within_share: set[str]
) -> None:
    queue: SubjectQueue[tuple[str, int]] = SubjectQueue(concurrency)
    added: defaultdict[str, list[int]] = defaultdict(list)
    begun: defaultdict[str, list[int]] = defaultdict(list)
    under_way: list[str] = []

    def begin() -> None:
        waiting = len(queue)
        subject = queue.begin(within_share.__contains__)
        if subject is None:
            # A place stays free only when nothing waits.
            assert not waiting or len(under_way) >= concurrency
            return
        begun[subject[0]].append(subject[1])
        under_way.append(subject[0])

    for number, step in enumerate(steps):
        if step == "begin":
            begin()
        elif step == "end":
            if under_way:
                queue.end(under_way.pop(0))
        else:
            added[step].append(number)
            queue.add(step, (step, number))
        assert len(under_way) <= 2 * concurrency
    while len(queue):
        if under_way:
            queue.end(under_way.pop())
        begin()
    assert begun == added
