"""Tools of one MCP server that fail together are one fault, and one cause: the server's."""

import pytest

from evaluators.uses import SessionUses
from tests.support.fault_watches import AGENT, Watcher, used_all


@pytest.mark.parametrize("begin", ["mcp__{}__", "{}__", "mcp_{}_", "mcp_{}__"])
async def test_tools_of_one_server_that_fail_together_are_one_fault_that_names_it(
    begin: str,
) -> None:
    watcher = Watcher()
    find, book = (f"{begin.format('shop')}{each}" for each in ("find", "book"))
    names = (find, book, f"{begin.format('bank')}pay")
    good, bad = used_all(names), used_all(names, failing=(find, book))
    await watcher.live(*[good] * 40, *[bad] * 12)

    (fault,) = watcher.shown().values()
    assert (fault.fault, fault.tool, fault.tools) == (
        "server_failed",
        "shop",
        (book, find),
    )
    assert (fault.uses, fault.failures, fault.uses_before, fault.pages) == (12, 12, 40, True)
    assert watcher.value("detected", fault="server_failed", tool="shop") == 1
    assert watcher.value("detected", fault="tool_failed", tool=find) == 0

    await watcher.live(*[good] * 40, begin=100)
    assert watcher.shown() == {}
    assert watcher.value("detected", fault="server_failed", tool="shop") == 0


async def test_a_server_that_spans_name_is_the_cause_whatever_its_tools_are_called() -> None:
    watcher = Watcher()
    names = ("find", "book")

    def session(*failing: str) -> SessionUses:
        return used_all(names, failing=failing, server="shop.internal")

    await watcher.live(*[session()] * 40)
    began = watcher.log.clock.now
    await watcher.live(*[session(*names)] * 12, begin=40)
    await watcher.reader.finish()
    after = watcher.successor()
    await after.step()

    for each in (watcher, after):
        assert list(each.shown()) == [("server_failed", "shop.internal")]
        assert each.faults.of(AGENT).cause(began) == ("server_failed", "shop.internal")
        now = watcher.log.clock.now
        assert not each.faults.of(AGENT).is_over("server_failed", "shop.internal", now)
    alarm = after.log.clock.now
    await after.live(*[session("book")] * 40, begin=60)  # one of its tools works again
    assert list(after.shown()) == [("tool_failed", "book")]
    assert not after.faults.of(AGENT).is_over("server_failed", "shop.internal", alarm)
    await after.live(*[session()] * 40, begin=100)
    assert after.faults.of(AGENT).is_over("server_failed", "shop.internal", alarm)
    assert after.faults.of(AGENT).cause(began) != ("server_failed", "shop.internal")


async def test_one_failing_tool_of_a_server_is_a_tools_fault() -> None:
    watcher = Watcher()
    names = ("mcp__shop__find", "mcp__shop__book")
    await watcher.live(*[used_all(names)] * 40, *[used_all(names, failing=names[:1])] * 12)

    assert list(watcher.shown()) == [("tool_failed", "mcp__shop__find")]


async def test_a_server_whose_tool_was_told_before_is_not_told_again() -> None:
    watcher = Watcher()
    find, book, cancel = (f"mcp__shop__{each}" for each in ("find", "book", "cancel"))

    def session(*failing: str) -> SessionUses:
        return used_all((find, book, cancel), failing=failing)

    def told(of: Watcher) -> tuple[float | None, ...]:
        shown = (of.value("detected", fault="tool_failed", tool=each) for each in (find, book))
        server = {"fault": "server_failed", "tool": "shop"}
        return *shown, of.value("detected", **server), of.value("told_as_tool", **server)

    await watcher.live(*[session()] * 40, *[session(find)] * 12, every=10)
    assert told(watcher) == (1, None, None, None)

    await watcher.live(*[session(find, book)] * 12, begin=60, every=10)
    await watcher.reader.finish()
    after = watcher.successor()
    await after.step()
    for each in (watcher, after):
        assert list(each.shown()) == [("server_failed", "shop")]
        assert told(each) == (1, 0, 1, 1)

    await after.live(*[session(find, book, cancel)] * 12, begin=80, every=10)
    await after.live(*[session(book, cancel)] * 40, begin=100, every=10)
    assert told(after) == (1, 0, 1, 1), "the alert goes on though that tool works again"

    await after.live(*[session()] * 60, begin=150, every=10)
    assert told(after) == (0, 0, 0, 0)
