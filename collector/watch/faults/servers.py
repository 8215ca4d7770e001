"""Tools of one MCP server that fail together are one fault: the server's. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from collector.records.standing import Fault
from evaluators.formulas.fault_watch import Cause

ServerOf = Callable[[str], str | None]
"""A tool in, its server out."""
TOGETHER = 300.0  # seconds within which the faults of a server's tools begin
SESSIONS = 8  # as many as a tool has
_NAME = re.compile(r"(?:mcp__?)?(?P<server>\w[\w.-]*?)__\w|mcp_(?P<short>[^\W_][^\W_.-]*)_\w")
"""`mcp__server__tool` of Claude Code, Codex and the OpenAI Agents SDK; `server__tool`, `mcp_server_tool` of others."""


def server_of(tool: str) -> str | None:
    """The MCP server that the tool's name begins with."""
    found = _NAME.match(tool)
    return None if found is None else found[found.lastgroup or 0]


def by_server(faults: Sequence[Fault], server: ServerOf) -> Iterator[Fault]:
    """The faults, those of two or more tools of a server that began together as one, which comes first.

    Its numbers are those of the tool that failed in the most sessions: how many it is together is not known.
    """
    groups = _groups(((each.fault, each.tool, each.since) for each in faults), server)
    together = {tool for tools in groups.values() for tool in tools}
    for name, tools in groups.items():
        of_tools = [each for each in faults if each.fault == "tool_failed" and each.tool in tools]
        most = max(of_tools, key=lambda each: each.failures)
        sessions = dict.fromkeys(chain.from_iterable(each.sessions for each in of_tools))
        yield replace(
            most,
            fault="server_failed",
            tool=name,
            since=min(each.since for each in of_tools),
            sessions=tuple(sessions)[:SESSIONS],
            tools=tuple(tools),
        )
    yield from (each for each in faults if each.fault != "tool_failed" or each.tool not in together)


def no_longer(
    shown: Sequence[Fault], ended: Sequence[tuple[str, str, float]], server: ServerOf
) -> Iterator[Cause]:
    """What is a server's fault now, and the servers whose fault is over, `ended` being (fault, tool, since)."""
    now = [*by_server(shown, server)]
    servers = {each.tool for each in now if each.fault == "server_failed"}
    for tool in chain.from_iterable(each.tools for each in now):
        yield "tool_failed", tool
    every = (*((each.fault, each.tool, each.since) for each in shown), *ended)
    for name in sorted(_groups(every, server).keys() - servers):
        yield "server_failed", name


def _groups(faults: Iterable[tuple[str, str, float]], server: ServerOf) -> dict[str, list[str]]:
    """By server, its tools that began to fail together, where these are two or more."""
    found: dict[str, list[tuple[float, str]]] = {}
    for fault, tool, since in faults:
        if fault == "tool_failed" and (name := server(tool)) is not None:
            found.setdefault(name, []).append((since, tool))
    groups = {
        name: sorted(tool for since, tool in tools if max(tools)[0] - since <= TOGETHER)
        for name, tools in found.items()
    }
    return {name: tools for name, tools in groups.items() if len(tools) > 1}
