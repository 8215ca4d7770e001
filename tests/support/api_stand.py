"""A whole API over a log of the tests: records in, requests answered, no clock and no network."""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from collector.api.about import About
from collector.api.api import Api
from collector.api.compare import Versions
from collector.api.feedback_table import Matching
from collector.api.index import IndexResult
from collector.base.families import RuntimeFamilies
from collector.base.lifecycle import Health
from collector.base.telemetry import Telemetry
from collector.config.load import load
from collector.config.tree import Config
from collector.log.port import FEEDBACK, SIGNALS, TRACES
from collector.records.feedback import Feedback
from collector.records.signal import Signal
from collector.records.standing import Standings
from evaluators.model import Trace
from tests.support import api_records as make
from tests.support.faulty_log import FaultyLog

EVALUATORS: list[dict[str, Any]] = [{"name": "step_efficiency", "scope": "trace"}]


class Stand:
    """`take` puts records into the log and, without a reader, straight into the index."""

    def __init__(
        self,
        folder: Path,
        *overrides: str,
        log: FaultyLog | None = None,
        about: About | None = None,
        versions: Versions = lambda _agent, _evaluator: {},
    ) -> None:
        self.folder = folder
        self.config: Config = load([], {}, overrides)
        self.log = FaultyLog() if log is None else log
        self.telemetry = Telemetry()
        self.health = Health(RuntimeFamilies(self.telemetry).event_loop_lag)
        self.time = make.START
        self.standings: Standings = {}
        self.ports: tuple[int, int] | None = None  # of the receiver
        self.api = Api(
            log=self.log,
            folder=folder,
            config=self.config,
            telemetry=self.telemetry,
            evaluators=lambda: EVALUATORS,
            standings=lambda: self.standings,
            versions=versions,
            health=self.health,
            clock=lambda: self.time,
            ports=lambda: self.ports,
            about=about,
        )

    def take_traces(self, *traces: Trace | bytes) -> IndexResult:
        first = len(self.log.written)
        for each in traces:
            self.log.append(TRACES, make.trace_value(each) if isinstance(each, Trace) else each)
        return self.api._index.take_traces(self.log.written[first:])

    def take_signals(self, *signals: Signal) -> IndexResult:
        first = len(self.log.written)
        for each in signals:
            self.log.append(SIGNALS, make.value(each))
        return self.api._index.take_signals(self.log.written[first:])

    def take_feedback(self, *feedback: Feedback) -> IndexResult:
        """Put it into the log at the stand's time, and into the index."""
        first = len(self.log.written)
        self.log.clock.now = self.time
        for each in feedback:
            self.log.append(FEEDBACK, msgspec.json.encode(each))
        return self.api._index.take_feedback(self.log.written[first:])

    def take_session(self, number: int, score: float | None, **changes: Any) -> Trace:
        """A session of one trace, `s-<number>` of `planner`, with its reliability."""
        of = make.trace(number, **{"session_id": f"s-{number}", **changes})
        self.take_traces(of)
        self.take_signals(make.session_signal(of, "agent_reliability", score))
        return of

    def match(self, *, max_age: float = 7 * 86_400.0) -> Matching:
        """Look for what waits."""
        return self.api._index.match(now=self.time, max_age=max_age, scores_max_age=max_age)

    def client(self, base: str = "http://127.0.0.1:4390") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.api.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=base)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        async with self.client() as client:
            return await client.get(path, headers=headers)

    async def text(self, path: str, **headers: str) -> str:
        return (await self.get(path, **headers)).text

    async def json(self, path: str) -> Any:
        return (await self.get(f"/api/v1/{path}")).json()

    async def items(self, path: str) -> list[dict[str, Any]]:
        return (await self.json(path))["items"]

    def counted(self, name: str, /, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0

    def close(self) -> None:
        self.api.close()


NewStand = Callable[..., Stand]
"""Settings and arguments of `Stand` in, one that is closed at the end of the test out."""


@pytest.fixture
def new_stand(tmp_path: Path) -> Generator[NewStand]:
    """Makes one with these settings, in a folder of its own unless one is given."""
    made: list[Stand] = []

    def new(*overrides: str, folder: Path | None = None, **given: Any) -> Stand:
        made.append(Stand(folder or tmp_path / f"stand-{len(made)}", *overrides, **given))
        return made[-1]

    yield new
    for each in made:
        each.close()


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    return new_stand()


@pytest.fixture
def filled_stand(new_stand: NewStand) -> Stand:
    return filled(new_stand())


def trace_signals(of: Trace, scores: Sequence[tuple[str, float]]) -> list[Signal]:
    """One signal per (evaluator, score)."""
    return [
        make.signal(of, evaluator, score=score, success=score >= 0.5) for evaluator, score in scores
    ]


def filled(stand: Stand) -> Stand:
    """Session s-1 with traces 1 and 2, s-2 of another service with trace 3."""
    one, two = make.trace(1), make.trace(2)
    three = make.trace(3, service="refunds", agent="clerk", session_id="s-2")
    stand.take_traces(two, one, three)
    for each in (one, two, three):
        stand.take_signals(*trace_signals(each, [("step_efficiency", 0.4), ("coherence", 0.9)]))
    stand.take_signals(
        make.session_signal(two, "agent_reliability", 0.8, revision=2),
        make.session_signal(two, "agent_consistency", 0.6, revision=2),
        make.session_signal(three, "agent_reliability", None, revision=3),
    )
    return stand
