import asyncio

import pytest

from collector.base.child import restart_backoff
from collector.base.errors import LogUnavailable, Retryable
from collector.base.retry import Backoff, Retry


class Away:
    """Fails so many times; tells how long it was waited for, by which its clock goes on."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.waits: list[float] = []
        self.now = 1000.0

    def retry(self, name: str = "Scoring", last_attempts: int = 1) -> Retry:
        made = Retry(name, self.sleep, last_attempts, monotonic=lambda: self.now)
        made.stopping = asyncio.Event()
        return made

    async def ask(self) -> str:
        if self.failures:
            self.failures -= 1
            raise LogUnavailable("away")
        return "there"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


async def test_an_outage_of_hours_is_waited_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    away = Away(5000)

    assert await away.retry().log("write", away.ask) == "there"

    assert away.waits[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert set(away.waits[7:]) == {5.0}
    levels = [each.levelname for each in caplog.records]
    assert (levels[0], levels[-1], levels.count("INFO")) == ("WARNING", "INFO", 1)


async def test_what_fails_and_succeeds_by_turns_is_one_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that has taken a right away: a line a minute, not two a try."""
    caplog.set_level("INFO")
    away = Away(0)
    retry = away.retry()
    for _ in range(100):
        away.failures = 2
        await retry.log("read", away.ask)
        await away.sleep(0.3)
    await away.sleep(6)
    for _ in range(2):
        await retry.log("read", away.ask)

    away_now = "LogUnavailable('away')"
    assert [each.getMessage() for each in caplog.records] == [
        f"Scoring cannot read now and tries again: {away_now}",
        "Over after 59.7 s: Scoring cannot read.",
    ]


async def test_an_outage_that_lasts_is_said_every_minute_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = Away(40)
    caplog.set_level("INFO")

    await away.retry().log("write", away.ask)

    away_now = "LogUnavailable('away')"
    assert [each.getMessage() for each in caplog.records] == [
        f"Scoring cannot write now and tries again: {away_now}",
        f"Scoring cannot write for 61 s now: {away_now}",
        f"Scoring cannot write for 121 s now: {away_now}",
        "Over after 176.3 s: Scoring cannot write.",
    ]


@pytest.mark.parametrize("attempts", [1, 5])
async def test_a_stop_leaves_so_many_attempts_and_they_are_quick(attempts: int) -> None:
    away = Away(10_000)
    retry = away.retry(last_attempts=attempts)

    async def ask() -> str:
        if len(away.waits) == 20 and retry.stopping is not None:
            retry.stopping.set()
        return await away.ask()

    with pytest.raises(LogUnavailable):
        await retry.log("write", ask)

    assert away.waits[20:] == [0.1, 0.2, 0.4, 0.8][: attempts - 1]


async def test_a_stop_ends_the_wait_for_the_next_attempt() -> None:
    stopping = asyncio.Event()
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        del seconds
        asleep.set()
        await asyncio.Event().wait()

    retry = Retry("Scoring", sleep, last_attempts=1)
    retry.stopping = stopping

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        attempt = tasks.create_task(retry.log("write", Away(1).ask))
        await asleep.wait()
        stopping.set()

    assert attempt.result() == "there"


async def test_workers_that_fail_are_retryable_whatever_the_error() -> None:
    retry = Retry("Assembly", Away(0).sleep, last_attempts=2)

    async def attempt() -> None:
        raise ZeroDivisionError

    with pytest.raises(Retryable, match="ZeroDivisionError"):
        await retry.workers("read", attempt)


def test_waits_double_up_to_the_longest_and_start_again_after_a_success() -> None:
    backoff = Backoff(first=1.0, longest=5.0)

    waits = [backoff.next() for _ in range(5)]
    backoff.reset()

    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.next() == 1.0


def test_a_process_that_never_starts_is_started_for_ever() -> None:
    restarts = restart_backoff()

    waits = [restarts.next() for _ in range(5000)]

    assert waits[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    assert waits[-1] == 10.0
