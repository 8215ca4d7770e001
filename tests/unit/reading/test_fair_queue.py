"""Which job goes next, by an injected clock."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.reading.fair_queue import BATCH, KNOWN, WINDOW, JobQueue


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    service: str
    name: str = ""
    seconds: float = 1.0


def queue_of(*jobs: Job, share: float = 0.5) -> JobQueue[Job]:
    queue: JobQueue[Job] = JobQueue(share)
    for job in jobs:
        queue.put(job, 0.0)
    return queue


def work(queue: JobQueue[Job], now: float) -> tuple[list[Job], float]:
    """One worker takes a batch and answers it."""
    batch = queue.take(now, workers=1)
    for job in batch:
        queue.began(job, now)
        now += job.seconds
        queue.ended(job, now)
    return batch, now


def test_a_service_is_charged_for_a_job_that_is_still_under_way() -> None:
    hung, waits, good = Job("bad"), Job("bad"), Job("good")
    queue = queue_of(hung)
    queue.began(queue.take(0.0, workers=2)[0], 0.0)
    queue.put(waits, 1.0)
    queue.put(good, 1.0)

    assert queue.take(2.0, workers=2) == [good]


def test_jobs_that_were_never_begun_go_back_to_the_front() -> None:
    one, two, three = (Job("bot", str(n)) for n in range(3))
    queue = queue_of(three)

    queue.put_back([one, two], 0.0)

    assert list(queue) == [one, two, three]


def test_a_batch_is_as_long_as_the_services_jobs_are_short() -> None:
    """Jobs that were sent to a worker cannot make room for another service's."""
    queue = queue_of(*(Job("quick", seconds=0.001) for _ in range(30)))
    assert len(work(queue, 0.0)[0]) == 1  # how long it takes is not known yet
    assert len(work(queue, 0.0)[0]) == BATCH

    queue = queue_of(*(Job("slow", seconds=2.0) for _ in range(30)))
    assert len(work(queue, 0.0)[0]) == 1
    assert len(work(queue, 2.0)[0]) == 1


def test_no_worker_gets_more_than_its_part() -> None:
    queue = queue_of(*(Job("quick", seconds=0.001) for _ in range(9)))
    work(queue, 0.0)

    assert len(queue.take(1.0, workers=4)) == 2


def test_the_start_of_a_worker_is_charged_to_the_service_that_ended_it() -> None:
    queue = queue_of(Job("deadly"), Job("good"))

    queue.charge("deadly", 2.0, 0.0)

    assert [each.service for each in queue.take(1.0, workers=1)] == ["good"]


def test_worker_time_is_forgotten_after_some_windows() -> None:
    queue = queue_of(Job("good"), Job("bot"))
    queue.charge("bot", 30.0, 0.0)
    queue.charge("good", 0.1, 10 * WINDOW)

    assert [each.service for each in queue.take(10 * WINDOW, workers=1)] == ["bot"]


def test_services_that_come_and_go_are_remembered_up_to_a_bound() -> None:
    queue = queue_of()
    queue.charge("large", 30.0, 0.0)
    for n in range(10 * KNOWN):
        queue.charge(f"s{n}", 0.001, 0.0)

    assert len(queue._lines) <= 2 * KNOWN
    assert queue._lines["large"].used(0.0) == 30.0


def served_beside_late(queue: JobQueue[Job]) -> list[str]:
    """The services of the jobs of 100 seconds, while another one's jobs wait."""
    for _ in range(100):
        queue.put(Job("late"), 0.0)
    now, chosen = 0.0, list[str]()
    while now < 100:
        batch, now = work(queue, now)
        chosen += [job.service for job in batch]
    return chosen


@pytest.mark.parametrize(("share", "most"), [(0.2, 0.5), (0.5, 0.5), (0.8, 0.8), (1.0, 1.0)])
def test_a_service_has_its_share_while_another_one_waits(share: float, most: float) -> None:
    """As many seconds of one service's jobs came first as are worked off in all."""
    queue = queue_of(*(Job("early") for _ in range(100)), share=share)
    chosen = served_beside_late(queue)

    assert chosen.count("early") / len(chosen) == pytest.approx(most, abs=0.05)


def test_many_names_leave_another_service_its_part() -> None:
    queue = queue_of(*(Job(f"alias{n % 9}") for n in range(900)))
    chosen = served_beside_late(queue)

    assert chosen.count("late") >= 9


@settings(max_examples=100, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0.001, 3.0), st.floats(0.0, 20.0)), max_size=60
    )
)
def test_the_one_that_used_least_goes_first_and_every_job_is_answered(
    jobs: list[tuple[str, float, float]],
) -> None:
    queue: JobQueue[Job] = JobQueue(0.5)
    coming = sorted(
        ((at, Job(service, seconds=seconds)) for service, seconds, at in jobs),
        key=lambda each: each[0],
    )
    now, answered = 0.0, 0
    while coming or len(queue):
        while coming and (coming[0][0] <= now or not len(queue)):
            at, job = coming.pop(0)
            now = max(now, at)
            queue.put(job, now)
        waiting = {job.service for job in queue}
        used = {service: queue._lines[service].used(now) for service in waiting}
        batch, now = work(queue, now)
        answered += len(batch)
        assert used[batch[0].service] == min(used.values())

    assert answered == len(jobs)
