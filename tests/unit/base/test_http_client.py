"""What an answer of a tool means for the signals, and how long an outage is waited out."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from collector.base.child import restart_backoff
from collector.base.errors import LogUnavailable, Permanent, Retryable
from collector.base.http_client import Client, HttpTarget
from collector.base.retry import Retry
from tests.support.loopback import Reply, Stub, stub

KEY = "s3cr3t-key"


@pytest.fixture
async def tool() -> AsyncIterator[Stub]:
    async with stub() as made:
        yield made


def client(tool: Stub, **fields: Any) -> Client:
    target = HttpTarget(
        section="sinks.x",
        endpoint=fields.pop("endpoint", tool.url),
        headers={"authorization": f"Bearer {KEY}"},
        secrets=(KEY,),
        credentials=("sinks.x.user", "sinks.x.key"),
        places=("sinks.x.endpoint",),
        **fields,
    )
    return Client(target, timeout=1.0)


async def error_of(tool: Stub, **fields: Any) -> Retryable | Permanent:
    asker = client(tool, **fields)
    with pytest.raises((Retryable, Permanent)) as raised:
        await asker.ask("POST", "/scores?a=b", {"a": 1})
    await asker.close()
    return raised.value


@pytest.mark.parametrize(
    ("status", "names"),
    [
        (401, "sinks.x.user (or sinks.x.key): HTTP 401: "),
        (403, "sinks.x.user (or sinks.x.key): HTTP 403: "),
        (404, "sinks.x.endpoint: HTTP 404: "),
        (405, "sinks.x.endpoint: HTTP 405: "),
        (302, "sinks.x.endpoint: HTTP 302: redirects are not followed"),
        (307, "sinks.x.endpoint: HTTP 307: redirects are not followed"),
        *((status, "") for status in (408, 425, 429, 500, 502, 503, 507)),
    ],
)
async def test_what_an_operator_can_change_waits_and_names_the_setting(
    tool: Stub, status: int, names: str
) -> None:
    tool.replies = [Reply(status, "no", {"location": f"{tool.url}/elsewhere"})]

    error = await error_of(tool)

    assert isinstance(error, Retryable)
    assert str(error).startswith(names)
    assert len(tool.requests) == 1, "a redirect would take the key along"


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_will_never_be_taken_is_not_tried_again(tool: Stub, status: int) -> None:
    tool.replies = [Reply(status, f"this is wrong, Bearer {KEY}\nreally")]

    error = await error_of(tool)

    assert isinstance(error, Permanent)
    assert str(error) == f"HTTP {status} to POST /scores: this is wrong, Bearer *** really"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7.0),
        ("99999", 600.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2915 07:28:00 GMT", 600.0),
        ("soon", None),
        ("-1", None),
        ("٣", None),
        ("", None),
    ],
)
async def test_a_tool_says_how_long_to_wait(tool: Stub, value: str, expected: float | None) -> None:
    tool.replies = [Reply(429, "", {"retry-after": value} if value.isascii() else {})]

    error = await error_of(tool)

    assert isinstance(error, Retryable)
    assert error.after == expected


async def test_no_answer_is_retryable_and_names_no_password(tool: Stub) -> None:
    proxy = SecretStr("http://user:hunter2@127.0.0.1:1")
    tool.replies = [Reply(200, "", hangs=True)]
    async with asyncio.timeout(8):
        errors = [
            await error_of(tool, endpoint="http://127.0.0.1:1"),
            await error_of(tool, endpoint="http://no-such-host.invalid"),
            await error_of(tool),
            await error_of(tool, proxy=proxy),
        ]

    assert {type(each) for each in errors} == {Retryable}
    assert "hunter2" not in str(errors)


async def test_an_answer_is_read_to_a_bound(tool: Stub) -> None:
    tool.replies = [Reply(200, "x" * (3 << 20))]
    asker = client(tool)

    answer = await asker.ask("GET", "/", promised=lambda _: True)

    assert len(answer.text) == 1 << 20
    assert answer.field("detail") is None
    await asker.close()


async def test_a_certificate_that_cannot_be_read_is_an_error_of_the_file(tool: Stub) -> None:
    with pytest.raises(Retryable, match=r"^sinks\.x\.ca_file: "):
        await client(tool, ca_file="/dev/null").ask("GET", "/")


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


@pytest.mark.parametrize("failures", [40, 5000])
async def test_an_outage_of_hours_is_waited_out_and_said_every_minute(
    caplog: pytest.LogCaptureFixture, failures: int
) -> None:
    caplog.set_level("INFO")
    away = Away(failures)

    assert await away.retry().log("write", away.ask) == "there"

    assert away.waits[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert set(away.waits[7:]) == {5.0}
    first, *later = (each.getMessage() for each in caplog.records)
    assert first == "Scoring cannot write now and tries again: LogUnavailable('away')"
    if failures == 40:
        assert later == [
            "Scoring cannot write for 61 s now: LogUnavailable('away')",
            "Scoring cannot write for 121 s now: LogUnavailable('away')",
            "Over after 176.3 s: Scoring cannot write.",
        ]
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

    assert [each.getMessage() for each in caplog.records] == [
        "Scoring cannot read now and tries again: LogUnavailable('away')",
        "Over after 59.7 s: Scoring cannot read.",
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


async def test_what_workers_fail_with_is_retryable_and_they_are_started_for_ever() -> None:
    restarts = restart_backoff()

    async def attempt() -> None:
        raise ZeroDivisionError

    with pytest.raises(Retryable, match="ZeroDivisionError"):
        await Retry("Assembly", Away(0).sleep, last_attempts=2).workers("read", attempt)
    for _ in range(2):  # again after a success
        waits = [restarts.next() for _ in range(5000)]
        restarts.reset()
        assert waits[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
        assert waits[-1] == 10.0
