"""Services take turns; nothing that waits is forgotten, and a service's own order is that of the log."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from collector.judging.dispatcher import SubjectQueue


def always(_: str) -> bool:
    return True


def never(_: str) -> bool:
    return False


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


def test_a_single_service_has_every_place() -> None:
    queue = queue_of("aaaa", concurrency=3)
    assert [queue.begin(never) for _ in range(4)] == ["a0", "a1", "a2", None]


def test_a_service_above_its_share_comes_after_one_within_it() -> None:
    queue = queue_of("aab")
    assert queue.begin(lambda each: each == "b") == "b2"
    queue.end("b")
    assert queue.begin(lambda each: each == "b") == "a0"


def test_subjects_of_a_service_above_its_share_hold_no_place_against_others() -> None:
    queue = queue_of("aa", concurrency=2)
    assert queue.begin(always)
    assert queue.begin(always)
    queue.add("b", "b")
    assert queue.begin(always) is None
    assert queue.begin(lambda each: each == "b") == "b"


def test_twice_the_places_is_the_most_and_then_no_service_contends() -> None:
    queue = queue_of("aabbbb", concurrency=2)
    for _ in range(2):
        assert queue.begin(lambda each: each == "a") in {"a0", "a1"}
    assert queue.contenders == {"b"}
    assert queue.begin(lambda each: each == "b") == "b2"
    assert queue.begin(lambda each: each == "b") == "b3"
    queue.add("c", "c")
    assert queue.begin(lambda each: each == "c") is None
    assert queue.contenders == frozenset()


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


@given(st.integers(1, 200), st.integers(1, 5))
def test_no_service_waits_longer_than_one_turn_of_each_other(greedy: int, modest: int) -> None:
    queue = queue_of("a" * greedy + "b" * modest)
    begun = [each[0] for each in order_of(queue)]
    assert begun[:2] == ["a", "b"]
    assert begun.count("b") == modest
    assert begun[: 2 * min(greedy, modest)].count("b") >= min(greedy, modest)
