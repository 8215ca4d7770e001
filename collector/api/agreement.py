"""Evaluators beside what people said, from the index: how far they agree, and where they do not.

What is said of a trace, or of one of its spans, counts for the trace and for its session; negative if anybody says so.
Only what people say counts. The newest `LOOKED_AT` of it are compared.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from collector.api.charts import Reader
from collector.api.outcomes import unpack
from collector.api.store import session_subject, trace_subject
from evaluators.formulas.people_agreement import Pair

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
        """How far the score is from what people say: 0 to 1."""
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


def compared(reader: Reader) -> dict[AgreementLabels, list[Compared]]:
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
