"""How long the pages take over a large index.

    python -m tests.bench.page_scale [--sessions 100000] [--agents 1000]

Half of the one-trace sessions are of one busy agent with three versions, the others of so many agents in turn; sixty of
them have an alarm. One more session has a thousand traces. The requests go through the application, from its URL to the
bytes of its answer.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx

from collector.log.port import SIGNALS, Position, Record
from collector.records.codec import encode
from collector.records.signal_batch import batch_records, made
from collector.records.standing import Drop, Standing, Standings, WatchedScores
from collector.records.traces import TraceRecord
from evaluators.model import Tokens, Trace
from tests.bench.table import at_most, heading
from tests.bench.test_index_cost import SESSION, TRACE
from tests.support import api_records as make
from tests.support.api_stand import Stand

REPEATS = 7
MARK = 300.0
"""Milliseconds, the median of a request."""
BUSY = {"service": "shop", "agent": "busy"}
FAILED = {**BUSY, "failed": TRACE[0]}
RELEASES = 3
ALARMED = 60
LONG, TURNS = "long", 1_000
"""The session of many traces, and how many."""
_AT_ONCE = 250


def agent_of(number: int, agents: int) -> tuple[str, str]:
    """The service and the agent of a session."""
    if number % 2:
        return BUSY["service"], BUSY["agent"]
    return f"service-{number // 2 % 20}", f"agent-{number // 2 % agents}"


def fill(stand: Stand, count: int, agents: int) -> None:
    """Put so many sessions into the index of the stand, one second after another."""
    index = stand.api._index
    offset = -1
    for first in range(0, count, _AT_ONCE):
        traces: list[bytes] = []
        signals: list[Record] = []
        for number in range(first, min(count, first + _AT_ONCE)):
            service, agent = agent_of(number, agents)
            score = number * 7 % 101 / 101
            of = make.trace(
                number + 1,
                service=service,
                agent=agent,
                agent_version=f"1.{RELEASES * number // count}",
                session_id=f"session-{number}",
                cost_usd=0.001 * score,
                tokens=Tokens(input=2000 + number % 300, output=200),
            )
            signals_made = [
                make.signal(of, name, score=score, success=score > 0.2) for name in TRACE
            ]
            signals_made += [make.session_signal(of, name, score) for name in SESSION]
            (batch,) = batch_records([made(each, first=True) for each in signals_made])
            assert isinstance(batch.value, bytes)
            offset += batch.count
            position = Position(SIGNALS, 0, offset)
            seen = make.START + number
            signals.append(
                Record(position=position, key=b"", value=batch.value, time=seen, count=batch.count)
            )
            traces.append(encode(TraceRecord(trace=replace(of), spans=(), revision=0, seen=seen)))
        index.take_traces(make.records("traces", traces, first=first))
        index.take_signals(signals)
    stand.time = make.START + count


def turn(number: int) -> Trace:
    """A trace of the long session."""
    return make.trace(10_000_000 + number, service="talk", agent="talker", session_id=LONG)


def fill_long(stand: Stand) -> None:
    """Put the long session into the log and the index."""
    for number in range(TURNS):
        of = turn(number)
        stand.take_traces(make.trace_value(of))
        stand.take_signals(*(make.signal(of, name, score=0.4, success=False) for name in TRACE))
        stand.take_signals(make.session_signal(of, "agent_reliability", 0.4, revision=number))


def standings(stand: Stand, agents: int) -> Standings:
    """Of the busy agent and some others, all with an alarm since the middle of the time."""
    since = (make.START + stand.time) / 2
    trail = tuple((int(make.START + 300 * number), number % 1000) for number in range(64))
    names = [agent_of(2 * number, agents) for number in range(min(agents, ALARMED))]
    return {
        (service, agent): Standing(
            service=service,
            agent=agent,
            drops=(
                Drop(
                    evaluator="agent_reliability",
                    scope="session",
                    direction="worse",
                    since=since,
                    mean_rank=0.2,
                    sessions=63,
                ),
            ),
            watched=(
                WatchedScores(
                    evaluator="agent_reliability",
                    scope="session",
                    progress=1.0,
                    samples=1_000,
                    trail=trail,
                ),
            ),
        )
        for service, agent in (*names, (BUSY["service"], BUSY["agent"]))
    }


async def medians(stand: Stand, agents: int) -> list[tuple[str, float]]:
    """(Request, median in milliseconds)."""
    service, agent = agent_of(0, agents)
    late = turn(50).trace_id
    asked: tuple[tuple[str, str, dict[str, str], str], ...] = (
        ("the overview", "/", {}, "worse than its own past"),
        ("the overview of 30 days", "/", {"range": "30d"}, "worse than its own past"),
        ("the page of the busy agent", "/agent", BUSY, "The worst since"),
        ("the page of the busy agent, 30 days", "/agent", {**BUSY, "range": "30d"}, "last 30d"),
        ("the page of the busy agent, 15 minutes", "/agent", {**BUSY, "range": "15m"}, "last 15m"),
        ("the page of another agent", "/agent", {"service": service, "agent": agent}, agent),
        ("the sessions, worst first", "/sessions", {}, "Next page"),
        ("sessions of the busy agent that failed", "/sessions", FAILED, "Next page"),
        ("a search that many sessions fit", "/sessions", {"q": "question"}, "Next page"),
        ("a search that few sessions fit", "/sessions", {"q": "session-77"}, "session-77"),
        ("a session of a thousand traces", "/session", {"id": LONG}, "951 to 1,000 of 1,000"),
        ("its earliest traces", "/session", {"id": LONG, "before": late}, "1 to 50 of 1,000"),
        ("a trace of it", "/trace", {"id": late}, "execute_tool lookup"),
        ("the health", "/health", {}, "Storage"),
    )
    async with stand.client() as client:
        return [
            (what, await _median(client, path, given, says)) for what, path, given, says in asked
        ]


async def _median(client: httpx.AsyncClient, path: str, given: dict[str, str], says: str) -> float:
    taken: list[float] = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        answer = await client.get(path, params=given)
        taken.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200
        assert says in answer.text
    return statistics.median(taken)


def measured(count: int, agents: int) -> Iterator[tuple[str, float]]:
    """The index filled, then (request, median in milliseconds)."""
    with tempfile.TemporaryDirectory() as folder:
        stand = Stand(Path(folder))
        fill_long(stand)
        fill(stand, count, agents)
        stand.standings = standings(stand, agents)
        yield from asyncio.run(medians(stand, agents))
        stand.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=1_000)
    given = parser.parse_args(arguments)
    began = time.monotonic()
    heading(f"Pages at {given.sessions} sessions of {given.agents} agents, median")
    for what, median in measured(given.sessions, given.agents):
        at_most(what, median, MARK, " ms")
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
