"""Tools of one MCP server that fail together are one fault: the server's. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from collector.records.standing import Fault
from evaluators.formulas.fault_watch import Cause

TOGETHER = 300.0  # seconds within which the faults of a server's tools begin
SESSIONS = 8  # as many as a tool has
_NAME = re.compile(r"(?:mcp__)?(?P<server>\w[\w.-]*?)__\w")
"""`mcp__server__tool` of Claude Code, Codex and the OpenAI Agents SDK, `server__tool` of gateways."""


def server_of(tool: str) -> str | None:
    """The MCP server that the tool's name begins with."""
    found = _NAME.match(tool)
    return None if found is None else found["server"]


def by_server(shown: Iterable[Fault]) -> Iterator[Fault]:
    """The faults, those of two or more tools of a server that began together as one, which comes first.

    Its numbers are those of the tool that failed in the most sessions: how many it is together is not known.
    """
    faults = tuple(shown)
    groups = _groups((each.fault, each.tool, each.since) for each in faults)
    together = {tool: server for server, tools in groups.items() for tool in tools}
    for server, tools in groups.items():
        of_tools = [each for each in faults if each.fault == "tool_failed" and each.tool in tools]
        most = max(of_tools, key=lambda each: each.failures)
        sessions = dict.fromkeys(chain.from_iterable(each.sessions for each in of_tools))
        yield replace(
            most,
            fault="server_failed",
            tool=server,
            since=min(each.since for each in of_tools),
            sessions=tuple(sessions)[:SESSIONS],
            tools=tuple(tools),
        )
    yield from (each for each in faults if each.fault != "tool_failed" or each.tool not in together)


def no_longer(shown: Sequence[Fault], ended: Sequence[tuple[str, str, float]]) -> Iterator[Cause]:
    """What is a server's fault now, and the servers whose fault is over, `ended` being (fault, tool, since)."""
    now = [*by_server(shown)]
    servers = {each.tool for each in now if each.fault == "server_failed"}
    for each in now:
        for tool in each.tools:
            yield "tool_failed", tool
    all_ = (*((each.fault, each.tool, each.since) for each in shown), *ended)
    for server in _groups(all_):
        if server not in servers:
            yield "server_failed", server


def _groups(faults: Iterable[tuple[str, str, float]]) -> dict[str, list[str]]:
    """By server, its tools that began to fail together, where these are two or more."""
    found: dict[str, list[tuple[float, str]]] = {}
    for fault, tool, since in faults:
        server = server_of(tool) if fault == "tool_failed" else None
        if server is not None:
            found.setdefault(server, []).append((since, tool))
    groups: dict[str, list[str]] = {}
    for server, tools in found.items():
        newest = max(since for since, _ in tools)
        together = sorted(tool for since, tool in tools if newest - since <= TOGETHER)
        if len(together) > 1:
            groups[server] = together
    return groups
