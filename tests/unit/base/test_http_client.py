"""What an answer of a tool means for the signals, and that no message holds a secret."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from collector.base.errors import Permanent, Retryable
from collector.base.http_client import Client, HttpTarget
from tests.support.loopback import Reply
from tests.support.tools.stub import Stub, stub

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
    try:
        await asker.ask("POST", "/scores?a=b", {"a": 1})
    except (Retryable, Permanent) as error:
        return error
    finally:
        await asker.close()
    raise AssertionError("it was a yes")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 507])
async def test_a_tool_that_is_away_is_asked_again(tool: Stub, status: int) -> None:
    tool.replies = [Reply(status, "come back")]

    assert isinstance(await error_of(tool), Retryable)


@pytest.mark.parametrize(
    ("status", "names"),
    [
        (401, "sinks.x.user (or sinks.x.key): HTTP 401: "),
        (403, "sinks.x.user (or sinks.x.key): HTTP 403: "),
        (404, "sinks.x.endpoint: HTTP 404: "),
        (405, "sinks.x.endpoint: HTTP 405: "),
        (302, "sinks.x.endpoint: HTTP 302: redirects are not followed"),
        (307, "sinks.x.endpoint: HTTP 307: redirects are not followed"),
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
    tool.replies = [Reply(status, "this is wrong")]

    error = await error_of(tool)

    assert isinstance(error, Permanent)
    assert str(error) == f"HTTP {status} to POST /scores: this is wrong"


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


async def test_no_message_holds_a_secret(tool: Stub) -> None:
    tool.replies = [Reply(400, f"you sent Bearer {KEY}\nreally")]

    assert str(await error_of(tool)) == "HTTP 400 to POST /scores: you sent Bearer *** really"

    proxy = SecretStr("http://user:hunter2@127.0.0.1:1")
    error = await error_of(tool, proxy=proxy)
    assert isinstance(error, Retryable)
    assert "hunter2" not in str(error)


async def test_no_answer_is_retryable(tool: Stub) -> None:
    assert isinstance(await error_of(tool, endpoint="http://127.0.0.1:1"), Retryable)
    assert isinstance(await error_of(tool, endpoint="http://no-such-host.invalid"), Retryable)
    tool.replies = [Reply(200, "", hangs=True)]
    async with asyncio.timeout(8):
        assert isinstance(await error_of(tool), Retryable)


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
