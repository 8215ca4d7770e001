"""`/api/v1/agreement`, and the gauges of the same: every evaluator and judge beside what people said."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import RequestRefused, answer, limit_of, only, text_of
from collector.api.charts import IndexReader
from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.outcomes import unpack
from collector.api.query import time_shown
from collector.api.store import session_subject, trace_subject
from collector.base.clock import next_tick
from collector.base.telemetry import Telemetry
from evaluators.formulas.people_agreement import Agreement, Pair, agreement

# Evaluators beside what people said, from the index: how far they agree, and where they do not.
#
# What is said of a trace, or of one of its spans, counts for the trace and for its session; negative if anybody says
# so. Only what people say counts. The newest `LOOKED_AT` of it are compared.

LOOKED_AT = 20_000  # of what people said, the newest, that is put beside scores
_SAID = """
SELECT f.name, min(f.sign), {}, max(f.arrived) FROM (
    SELECT * FROM feedback INDEXED BY feedback_of_people WHERE kind = 'human' AND sign != 0
    ORDER BY arrived DESC LIMIT ?) f CROSS JOIN {} GROUP BY f.name, {}"""
_TRACES = _SAID.format("t.id, t.trace_id, t.session", "traces t ON t.trace_id = f.trace_id", "t.id")
_SESSIONS = _SAID.format(
    "NULL, NULL, s.id",
    "sessions s ON s.session_id = f.session_id AND s.service = f.service",
    "s.id",
)
_OF_SESSION = """
SELECT s.service, a.agent, s.session_id, o.subject, o.packed FROM sessions s
JOIN agents a ON a.id = s.agent JOIN outcomes o ON o.session = s.id WHERE s.id = ?"""


class AgreementLabels(NamedTuple):
    service: str
    agent: str
    evaluator: str
    name: str  # of the feedback


class Compared(NamedTuple):
    session_id: str
    trace_id: str | None  # None: the session as a whole
    said: int  # when people spoke last, microseconds of log time
    pair: Pair

    @property
    def distance(self) -> float:
        return abs(self.pair.score - float(self.pair.liked))

    @property
    def differs(self) -> bool:
        passed, liked = self.pair.passed, self.pair.liked
        return self.distance > 0.5 if passed is None else passed != liked


class SessionOpinion(NamedTuple):
    """What people say, under one name, of a trace or a session."""

    name: str
    sign: int
    trace: int | None
    trace_id: str | None
    session: int
    arrived: int


def compared(reader: IndexReader) -> dict[AgreementLabels, list[Compared]]:
    execute = reader.connection.execute
    by_session: dict[int, list[SessionOpinion]] = defaultdict(list)
    for statement in (_TRACES, _SESSIONS):
        for row in execute(statement, (LOOKED_AT,)):
            said = SessionOpinion(*row)
            by_session[said.session].append(said)
    names = reader.names()
    found: dict[AgreementLabels, list[Compared]] = defaultdict(list)
    for session, said in by_session.items():
        for row in execute(_OF_SESSION, (session,)):
            for labels, each in _of_subject(session, said, row, names):
                found[labels].append(each)
    return found


def _of_subject(
    session: int, said: Sequence[SessionOpinion], row: tuple[Any, ...], names: Mapping[int, str]
) -> Iterator[tuple[AgreementLabels, Compared]]:
    service, agent, session_id, subject, packed = row
    is_session = subject == session_subject(session)
    mine = [
        each
        for each in said
        if is_session or (each.trace is not None and trace_subject(each.trace) == subject)
    ]
    if not mine:
        return
    outcomes = [each for each in unpack(packed) if each.score is not None]
    for name in dict.fromkeys(each.name for each in mine):
        spoken = [each for each in mine if each.name == name]
        liked = min(each.sign for each in spoken) > 0
        when = max(each.arrived for each in spoken)
        trace_id = None if is_session else spoken[0].trace_id
        for evaluator, score, passed in outcomes:
            if score is not None and evaluator in names:
                labels = AgreementLabels(service, agent, names[evaluator], name)
                yield labels, Compared(session_id, trace_id, when, Pair(score, passed, liked))


EVERY = 60.0  # seconds between two looks for the gauges
MOST_SERIES = 500  # of a gauge: those with the most pairs
FILTERS = ("service", "agent", "evaluator", "name")


class Agreed(NamedTuple):
    labels: AgreementLabels
    agreement: Agreement
    is_judge: bool

    @property
    def is_chance(self) -> bool:
        return self.is_judge and self.agreement.is_chance

    def shown(self) -> dict[str, Any]:
        numbers = self.agreement._asdict()
        return {**self.labels._asdict(), **numbers, "no_better_than_chance": self.is_chance}


@dataclass(slots=True, eq=False, kw_only=True)
class Agreements:
    """Looks at the index."""

    index: Index
    catalogue: Callable[
        [], Sequence[Mapping[str, Any]]
    ]  # every evaluator: name, method, whether it runs
    off_loop: OffLoop  # where requests are read
    telemetry: Telemetry  # bounds the services among the labels
    families: ApiFamilies
    now: Sequence[Agreed] = field(default=(), init=False)
    """As of the last look, those with the most pairs first."""

    def routes(self) -> list[Route]:
        return [Route("/api/v1/agreement", self.agreement)]

    async def run(self, stopping: asyncio.Event) -> None:
        """Look every minute, for the gauges and the pages."""
        while not stopping.is_set():
            with suppress(RequestRefused):  # the index is being opened again: the next look sees it
                self.now = await asyncio.to_thread(lambda: self.look()[0])
                self._show()
            await next_tick(EVERY, stopping)

    async def agreement(self, request: Request) -> Response:
        """How far they agree, and the pairs in which they do not: those furthest apart first."""
        only(request, *FILTERS, "limit")
        wanted = {name: text for name in FILTERS if (text := text_of(request, name)) is not None}
        limit = limit_of(request)

        def asked() -> Response:
            agreed, differing = self.look(wanted)
            return answer(
                {
                    "agreement": [each.shown() for each in agreed],
                    "items": [differing_shown(*each) for each in differing[:limit]],
                    "next": None,
                }
            )

        return await self.off_loop.run(asked)

    def look(
        self, wanted: Mapping[str, str] | None = None
    ) -> tuple[list[Agreed], list[tuple[AgreementLabels, Compared]]]:
        """How far they agree, and the pairs in which they differ, worst first; `wanted`: values of labels.

        Raises Refused: the index cannot be read now.
        """
        judges = {
            each["name"]
            for each in self.catalogue()
            if each.get("method") == "llm_judge" and each.get("runs")
        }
        asked = (wanted or {}).items()
        with self.index.reading() as reading:
            found = {
                labels: pairs
                for labels, pairs in compared(reading).items()
                if asked <= labels._asdict().items()
            }
        agreed = [
            Agreed(labels, agreement([each.pair for each in pairs]), labels.evaluator in judges)
            for labels, pairs in found.items()
        ]
        differing = [
            (labels, each) for labels, pairs in found.items() for each in pairs if each.differs
        ]
        return (
            sorted(agreed, key=lambda each: (-each.agreement.samples, each.labels)),
            sorted(differing, key=lambda each: (-each[1].distance, -each[1].said, each[0])),
        )

    def _show(self) -> None:
        families = self.families
        for gauge in families.agreements:
            gauge.clear()
        for each in self.now[:MOST_SERIES]:
            found = each.agreement
            if found.rank is None or found.rank_upper is None:
                continue
            labels = (self.telemetry.service(each.labels.service), *each.labels[1:])
            families.agreement_samples.labels(*labels).set(found.samples)
            families.agreement_rank.labels(*labels).set(found.rank)
            if found.kappa is not None:
                families.agreement_kappa.labels(*labels).set(found.kappa)
            if each.is_judge:
                families.agreement_upper.labels(*labels).set(found.rank_upper)


def differing_shown(labels: AgreementLabels, each: Compared) -> dict[str, Any]:
    """One disagreement as the API gives it."""
    return {
        **labels._asdict(),
        "session_id": each.session_id,
        "trace_id": each.trace_id,
        "score": each.pair.score,
        "success": each.pair.passed,
        "said": "positive" if each.pair.liked else "negative",
        "time": time_shown(each.said),
    }
