"""`spanwise notify --test`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from collector.commands.cli import main
from tests.support.tools.stub import TAKEN, Reply, Stub, stub


@pytest.fixture
async def server() -> AsyncIterator[Stub]:
    async with stub() as made:
        made.answer = lambda asked: TAKEN["slack" if asked.path == "/chat" else "webhook"]
        yield made


async def ran(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["notify", *arguments])


async def test_each_target_is_sent_a_test_and_its_end(
    server: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await ran(
        "--test",
        *("--set", f"notify.to.chat.slack={server.url}/chat"),
        *("--set", f"notify.to.hook.webhook={server.url}/hook"),
    )

    assert code == 0
    assert [each.path for each in server.requests] == ["/chat", "/chat", "/hook", "/hook"]
    assert "This is a test" in server.requests[0].body["text"]
    assert server.requests[3].body["type"] == "spanwise.alert.resolved.v1"
    assert capsys.readouterr().out.splitlines() == [
        "chat: sent a test notice, and its end",
        "hook: sent a test notice, and its end",
    ]


async def test_one_by_name(server: Stub) -> None:
    code = await ran(
        *("--test", "hook"),
        *("--set", f"notify.to.chat.slack={server.url}/chat"),
        *("--set", f"notify.to.hook.webhook={server.url}/hook"),
    )

    assert code == 0
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
async def test_a_mistake_is_one_line(
    arguments: list[str], code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ran(*arguments) == code
    assert line in capsys.readouterr().err


async def test_a_target_that_refuses_is_named_without_its_address(
    server: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [Reply(404, "no_team")]

    assert await ran("--test", "--set", f"notify.to.chat.slack={server.url}/T000") == 1

    said = capsys.readouterr().err
    assert said == "notify.to.chat.slack: HTTP 404: no_team\n"
