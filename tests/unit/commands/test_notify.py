"""`spanwise notify --test`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.command import Run, settings
from tests.support.loopback import Reply
from tests.support.tools.stub import TAKEN, Stub, stub


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    async with stub() as made:
        made.answer = lambda asked: TAKEN["slack" if asked.path == "/chat" else "webhook"]
        yield made


def targets(server: Stub) -> list[str]:
    chat, hook = f"{server.url}/chat", f"{server.url}/hook"
    return settings(f"notify.to.chat.slack={chat}", f"notify.to.hook.webhook={hook}")


async def test_each_target_is_sent_a_test_and_its_end(server: Stub, run: Run) -> None:
    done = await asyncio.to_thread(run, "notify", "--test", *targets(server))

    assert done.code == 0
    assert [each.path for each in server.requests] == ["/chat", "/chat", "/hook", "/hook"]
    assert "This is a test" in server.requests[0].body["text"]
    assert server.requests[3].body["type"] == "spanwise.alert.resolved.v1"
    assert done.out.splitlines() == [
        "chat: sent a test notice, and its end",
        "hook: sent a test notice, and its end",
    ]


async def test_one_by_name(server: Stub, run: Run) -> None:
    done = await asyncio.to_thread(run, "notify", "--test", "hook", *targets(server))

    assert done.code == 0
    assert {each.path for each in server.requests} == {"/hook"}


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([], 2, "give --test"),
        (["--test"], 1, "notify.to: no target is set"),
        (
            ["--test", "mail", "--set", "notify.to.chat.slack=http://x"],
            1,
            "notify.to: no target `mail`",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, line: str, run: Run) -> None:
    done = run("notify", *arguments)

    done.assert_one_line(line)
    assert done.code == code


async def test_a_target_that_refuses_is_named_without_its_address(server: Stub, run: Run) -> None:
    server.replies = [Reply(404, "no_team")]
    target = settings(f"notify.to.chat.slack={server.url}/T000")

    done = await asyncio.to_thread(run, "notify", "--test", *target)

    assert (done.code, done.complaints) == (1, ["notify.to.chat.slack: HTTP 404: no_team"])
