"""How long lists of sessions take, and the page that shows them, while the index holds a hundred thousand.

    python -m tests.bench --only lists

One-trace sessions of four services and a thousand agents, and one agent with five sessions that are the oldest. The
requests go through the application, from its URL to the bytes of its answer.
"""

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx

from collector.api.query import Query
from collector.api.session_list import SORTS
from collector.log.port import SIGNALS, Position, Record
from collector.records.codec import encode
from collector.records.signal_batch import batch_records, made
from collector.records.traces import TraceRecord
from evaluators.model import Tokens, Trace
from tests.bench.test_index_cost import SESSION, TRACE, WORDS
from tests.support import api_records as make
from tests.support.api_stand import Stand

SESSIONS = 100_000
REPEATS = 15
TEMPLATES = 40
MARK = 50.0
"""Milliseconds, the median of a request."""
AGENTS = 1_000
RARE = 5
_AT_ONCE = 250


class _Template:
    """The records of a session; others are made of them by their ids."""

    def __init__(self, number: int) -> None:
        words = itertools.cycle(WORDS[number:] + WORDS[:number])
        self.of = make.trace(
            number + 1,
            service=f"service-{number % 4}",
            agent=_agent(number),
            session_id=f"session-{number:016x}",
            input=" ".join(itertools.islice(words, 40)),
            output=" ".join(itertools.islice(words, 100)),
        )
        words_said = " ".join(itertools.islice(words, 8))
        signals = [make.signal(self.of, name, explanation=words_said) for name in TRACE]
        own = (*SESSION, "work_baseline")[number % 2 :]
        signals += [make.session_signal(self.of, name, number / TEMPLATES) for name in own]
        (record,) = batch_records([made(each, first=True) for each in signals])
        assert isinstance(record.value, bytes)
        self.signals, self.count = record.value, record.count

    def trace(self, number: int, agent: str | None) -> Trace:
        """The trace of session `number`."""
        return replace(
            self.of,
            trace_id=f"{number + 1:032x}",
            session_id=f"session-{number:016x}",
            agent=agent or _agent(number),
            start_time_unix_nano=int((make.START + number) * 1e9),
            end_time_unix_nano=int((make.START + number + number % 97) * 1e9),
            status="error" if number % 19 == 0 else "ok",
            cost_usd=number * 7 % 1_013 / 1_000 if number % 3 else None,
            tokens=Tokens(input=number * 11 % 5_003, output=number % 401),
        )

    def signals_of(self, trace: Trace) -> bytes:
        """The record of its signals."""
        value = self.signals.replace(self.of.trace_id.encode(), trace.trace_id.encode())
        value = value.replace(self.of.agent.encode(), trace.agent.encode())
        return value.replace(self.of.session_id.encode(), trace.session_id.encode())


def _agent(number: int) -> str:
    """All of one length: in the records that are made of a template they stand in the place of its own."""
    return f"agent-{number % AGENTS:04}"


def fill(stand: Stand) -> None:
    """Put the sessions into the index of the stand."""
    index = stand.api._index
    templates = [_Template(number) for number in range(TEMPLATES)]
    offset = -1
    for first in range(0, SESSIONS, _AT_ONCE):
        traces: list[bytes] = []
        signals: list[Record] = []
        for number in range(first, first + _AT_ONCE):
            template = templates[number % TEMPLATES]
            of = template.trace(number, "rare" if number < RARE else None)
            seen = make.START + number
            traces.append(encode(TraceRecord(trace=of, spans=(), revision=0, seen=seen)))
            if number >= RARE:
                offset += template.count
                position = Position(SIGNALS, 0, offset)
                value, many = template.signals_of(of), template.count
                signals.append(
                    Record(position=position, key=b"", value=value, time=seen, count=many)
                )
        index.take_traces(make.records("traces", traces, first=first))
        index.take_signals(signals)


async def medians(stand: Stand) -> list[tuple[str, float]]:
    """(Request, median in milliseconds)."""
    async with stand.client() as client:
        newest = (await client.get("/api/v1/sessions", params={"limit": 500})).json()
        asked: list[tuple[str, dict[str, str]]] = [
            ("", {}),
            (", the next page", {"cursor": newest["next"]}),
            (" of a service", {"service": "service-3"}),
            (" of an agent", {"agent": "agent-0017"}),
            (" of the agent with the oldest", {"agent": "rare"}),
            (", 500 of them", {"limit": "500"}),
            (" of no agent", {"agent": "nobody"}),
            *((f" by {sort}", {"sort": sort}) for sort in SORTS),
            (" by cost, of a service", {"sort": "cost", "service": "service-3"}),
            (
                " since the last thousand",
                {"sort": "cost", "since": str(make.START + SESSIONS - 1e3)},
            ),
            (", reliability", {"max_reliability": "0.01"}),
            (", reliability that none has", {"min_reliability": "0.999", "sort": "worst"}),
            (", status error by cost", {"status": "error", "sort": "cost"}),
            (", not passed", {"failed": "agent_reliability"}),
            (", a word that every sixth has", {"q": WORDS[3]}),
            (", a word that none has", {"q": "nothinglikeit", "sort": "worst"}),
            (", two words and a filter", {"q": f"{WORDS[5]} {WORDS[6]}", "status": "error"}),
            (", beginning of an id", {"q": "session-00000000000", "sort": "cost"}),
        ]
        lists = [("/api/v1/sessions" + what, "/api/v1/sessions", each) for what, each in asked]
        pages = [
            ("the page" + what, "/sessions", each) for what, each in asked if "limit" not in each
        ]
        every = (*lists, *pages)
        return [(what, await _median(client, path, each)) for what, path, each in every]


async def _median(client: httpx.AsyncClient, path: str, asked: dict[str, str]) -> float:
    taken: list[float] = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        answer = await client.get(path, params=asked)
        taken.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200
    return statistics.median(taken)


def measured() -> Iterator[tuple[str, float]]:
    """The index filled, then (request, median in milliseconds)."""
    with tempfile.TemporaryDirectory() as folder:
        stand = Stand(Path(folder))
        fill(stand)
        agents = Query(stand.api._index).agents(limit=2 * AGENTS).items
        held = sum(agent.sessions for agent in agents)
        assert held == SESSIONS, f"the index holds {held} of {SESSIONS} sessions"
        yield from asyncio.run(medians(stand))
        stand.close()
