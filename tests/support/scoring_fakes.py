"""Traces to score, evaluators that are plain hashes, and a way to run the room over a log of the tests."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Self

from collector.base.telemetry import Telemetry
from collector.config.tree import SessionWindow, Windows
from collector.log.port import SIGNALS, TRACES, Headers
from collector.records.codec import encode
from collector.records.sessions import SessionHead, session_key
from collector.records.signal import Signal
from collector.records.subject import Subject
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_summary import Summariser, headers_of
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import SessionRecord, TraceRecord, VerdictRecord
from collector.scoring.cached_session import AWAKE
from collector.scoring.effects import Effects, PlacedTrace
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import JudgedRules, Rules
from collector.scoring.scorer import Scorer
from evaluators.declare import declared, evaluator
from evaluators.digest import trace_digest
from evaluators.judge_use import JudgeUse
from evaluators.model import JSON, Failure, Method, ModelCall, Outcome, Score, Session, Trace, Turn
from evaluators.plan import Configured, Plan, make_plan
from evaluators.registry import Registry
from evaluators.resources import Block, Embedder, History, Sketch, UnitInterval
from evaluators.run import SessionScorer
from tests.support.clocks import SetClock
from tests.support.faulty_log import FaultyLog
from tests.support.signals import decoded_in


def unit(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


class LoopSketch(Sketch, frozen=True, kw_only=True):
    """All that the fake of `loop_detection` compares."""

    digest: str
    output: str | None

    @classmethod
    def of(cls, trace: Trace, embedder: Embedder) -> Self:
        return cls(digest=trace.digest, output=trace.output)

    def compared(self, previous: Sequence[Self | None]) -> Score:
        texts: list[JSON] = ["" if each is None else each.output or "" for each in previous]
        if not texts:
            return Score.assume(1.0, "nothing comes before it")
        return Score(value=unit(repr([self.digest, texts])), metadata={"texts": texts})


def _outcome(evaluator: str, *, method: Method = "deterministic", **fields: Any) -> Outcome:
    fields.setdefault("state", "scored")
    return Outcome(evaluator=evaluator, version="1", method=method, **fields)


def read_outcomes(trace: Trace, *, stand_in: bool = False) -> TraceOutcomes:
    """Scores that are hashes of all that an evaluator may see; `stand_in`: a judge has the last word on confidence."""
    always = Failure(type="exception", message="always")
    hidden = _outcome("hidden", state="failed", error=always)
    confidence = _outcome(
        "confidence",
        score=unit(trace.digest),
        final=not stand_in,
        explanation=f"of {trace.output}",
        metadata={"text": trace.output, "n": 1},
    )
    sketch = LoopSketch(digest=trace.digest, output=trace.output)
    return TraceOutcomes((confidence, hidden), {"loop_detection": encode(sketch)})


class Verdict(Block, frozen=True, kw_only=True):
    """Is it good?"""

    score: UnitInterval


@evaluator(version="1", name="confidence")
def judged_confidence(trace: Trace, *, verdict: Verdict) -> Score:
    """The verdict for which `read_outcomes` gives a stand-in."""
    return Score(value=verdict.score)


@evaluator(version="1", name="tone")
def tone(session: Session, *, verdict: Verdict) -> Score:
    """A judged session evaluator without a stand-in."""
    return Score(value=verdict.score)


def confidence(trace: Trace) -> Score:
    return Score(value=0.0)


def loop_detection(trace: Trace, *, history: History, embedder: Embedder) -> Score:
    return Score(value=0.0)


def agent_reliability(session: Session) -> Score:
    return Score(value=0.0)


def configured(function: Callable[..., Score], name: str = "", *, emit: bool = True) -> Configured:
    """An evaluator of the plan; the fakes answer in its place."""
    name = name or function.__name__
    is_loop = name == "loop_detection"
    evaluator(
        version="1",
        name=name,
        method="deterministic",
        threshold=None,
        assumed_counts=is_loop,
        sketch=LoopSketch if is_loop else None,
    )(function)
    spec = declared(function)
    assert spec is not None
    return Configured(spec=spec, options={}, threshold=None, options_digest="", emit=emit)


PLAN = Plan(
    trace=(
        configured(confidence),
        configured(loop_detection),
        configured(confidence, "hidden", emit=False),
    ),
    session=(configured(agent_reliability), configured(agent_reliability, "latency")),
)


class FakeSessionScorer(SessionScorer):
    """Sums over the turns; its outcomes depend on their set alone."""

    def __init__(self) -> None:
        super().__init__(PLAN)
        self.turns: dict[str, Turn] = {}

    def put(self, turn: Turn) -> None:
        self.turns[turn.trace_id] = turn

    def drop(self, trace_id: str) -> None:
        self.turns.pop(trace_id, None)

    def signals_used(self, evaluator: str) -> tuple[str, ...]:
        return ("loop_detection", "confidence") if evaluator == "agent_reliability" else ()

    def outcomes(self, session: Session, *, closed: bool) -> tuple[Outcome, ...]:
        assert len(session.turns) == len(self.turns)
        per_trace = {each: dict(self.turns[each].scores) for each in sorted(self.turns)}
        missing = {each: dict(self.turns[each].unscored_why) for each in sorted(self.turns)}
        text = repr((per_trace, missing))
        metadata = {"per_trace_signals": per_trace} if closed else {}
        return (
            _outcome(
                "agent_reliability",
                method="formula",
                score=unit(text),
                metadata=metadata,
                final=closed,
            ),
            _outcome(
                "latency",
                method="formula",
                state="measured",
                metadata={"sum": sum(sorted(each.duration for each in self.turns.values()))},
                final=closed,
            ),
        )


def rules(judged: JudgedRules | None = None) -> Rules:
    return Rules.of(PLAN, FakeSessionScorer, judged)


def judged_rules(
    *, max_lag: float = 100.0, samples: Callable[[bytes], bool] = lambda _key: True
) -> JudgedRules:
    """One judged evaluator of each scope."""
    plan = make_plan(
        Registry(each for each in map(declared, (judged_confidence, tone)) if each is not None),
        {},
        embedder=None,
        judge=True,
    )
    return JudgedRules(
        trace=tuple(each for each in plan.judged if each.spec.scope == "trace"),
        session=tuple(each for each in plan.judged if each.spec.scope == "session"),
        max_lag=max_lag,
        samples=samples,
    )


def make_record(
    trace_id: str,
    *,
    start: int = 0,
    session: str = "s",
    service: str = "bot",
    revision: int = 0,
    output: str | None = None,
    turn: bool = True,
    seen: float = 0.0,
    agent: str = "planner",
) -> TraceRecord:
    calls = (ModelCall(span_id="a" * 16),) if turn else ()
    spans = [f"{trace_id}-{n}" for n in range(revision + 1)]
    trace = Trace(
        trace_id=trace_id,
        service=service,
        agent=agent,
        session_id=session,
        session_source="session.id",
        output=f"out {trace_id} {revision}" if output is None else output,
        model_calls=calls,
        root_span_id="b" * 16,
        start_time_unix_nano=start,
        end_time_unix_nano=start + 1_000_000,
        digest=trace_digest(spans),
    )
    return TraceRecord(trace=trace, spans=(), revision=revision, seen=seen)


def summarised(
    record: TraceRecord, *, read_only: Collection[str] = (), stand_in: bool = False
) -> SummarisedTrace:
    """The record as scoring reads it."""
    return SummarisedTrace(
        summary=Summariser(read_only).summary(record.trace),
        outcomes=read_outcomes(record.trace, stand_in=stand_in),
        revision=record.revision,
        seen=record.seen,
    )


HEAD = SessionHead(
    service="bot",
    session_id="s",
    session_source="session.id",
    agent="planner",
    agent_version=None,
    opened=0.0,
    last=0.0,
)
CLOSED = Subject(
    scope="session",
    service="bot",
    session_id="s",
    session_source="session.id",
    agent="planner",
    agent_version=None,
    seen=1.0,
    revision=1,
    closed="idle",
)
"""What a signal of a session that has closed is about."""


def open_sessions(of: Rules, *, awake: int = AWAKE, **limits: float) -> OpenSessions:
    """The sessions of one partition, none is open."""
    return OpenSessions(partition=0, rules=of, limits=windows(**limits).session, awake=awake)


def taken(
    sessions: OpenSessions, record: SummarisedTrace, *, offset: int, now: float = 0.0
) -> Effects:
    """What a trace that is placed in its session leads to."""
    key = session_key("bot", record.summary.session_id)
    placed = sessions.take(record, key=key, offset=offset, now=now)
    assert isinstance(placed, PlacedTrace)
    return sessions.finish(placed, {})


def closed_in(effects: Iterable[Effects]) -> list[str]:
    """Ids of the sessions that closed, in order."""
    records = [change for each in effects for change in each.changes]
    return [each.session_id for each in records if isinstance(each, SessionRecord)]


def scored_log(*, atomic: bool = True) -> FaultyLog:
    """A log whose time begins at 0."""
    return FaultyLog(clock=SetClock(0.0), atomic=atomic)


def append_bytes(log: FaultyLog, key: bytes, value: bytes, headers: Headers = ()) -> int:
    """A record at the next multiple of 100, whatever the scorer has written in between."""
    log.skip_to((log.end_offset(TRACES) + 99) // 100 * 100, TRACES)
    return log.append(TRACES, value, key=key, headers=headers).offset


def append(
    log: FaultyLog, record: TraceRecord, now: float | None = None, *, stand_in: bool = False
) -> int:
    log.clock.now = log.clock.now if now is None else now
    trace = record.trace
    key = session_key(trace.service, trace.session_id)
    outcomes = encode(read_outcomes(trace, stand_in=stand_in))
    headers = headers_of(b"", outcomes, revision=record.revision, seen=record.seen)
    return append_bytes(log, key, encode(record), headers)


def windows(**session: float) -> Windows:
    return Windows(session=SessionWindow.model_validate(session))


async def _no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


def make_scorer(
    log: FaultyLog,
    *,
    limits: Windows | None = None,
    telemetry: Telemetry | None = None,
    redact: bool = False,
    judged: JudgedRules | None = None,
    pause: Callable[[float], Awaitable[None]] = _no_pause,
    awake: int = AWAKE,
) -> Scorer:
    return Scorer(
        log=log,
        rules=rules(judged=judged),
        windows=limits or windows(),
        telemetry=telemetry or Telemetry(),
        redact=redact,
        sleep=pause,
        awake=awake,
    )


async def run_to_end(scorer: Scorer, log: FaultyLog) -> None:
    """Until the reader has seen everything, the scorer's own records included."""
    log.at_end = asyncio.Event()
    await scorer.run(log.at_end)


def signals(log: FaultyLog) -> list[Signal]:
    return decoded_in(log.history(SIGNALS))


def latest(log: FaultyLog) -> dict[tuple[str, str, str], Signal]:
    """As consumers upsert: the highest revision of (scope, subject, evaluator), the last one of equals."""
    newest: dict[tuple[str, str, str], Signal] = {}
    for each in signals(log):
        key = (each.scope, each.trace_id or each.session_id, each.evaluator)
        if key not in newest or each.revision >= newest[key].revision:
            newest[key] = each
    return newest


USE = JudgeUse(model="m", calls=2, input_tokens=30, output_tokens=4, cost_usd=0.5, cached=False)


def verdict_of(subject: TraceRecord | SessionRecord, *, salt: str = "") -> VerdictRecord:
    """What a judge would say of it: the same for the same `salt`."""
    is_trace = isinstance(subject, TraceRecord)
    about = subject.trace if isinstance(subject, TraceRecord) else subject
    outcome = _outcome(
        "confidence" if is_trace else "tone",
        method="llm_judge",
        score=unit(about.digest + salt),
        judge=USE,
    )
    return VerdictRecord(
        scope="trace" if is_trace else "session",
        service=about.service,
        session_id=about.session_id,
        subject=about.trace_id if isinstance(about, Trace) else about.session_id,
        digest=about.digest,
        outcomes=(outcome,),
        calls=2,
        cost_usd=0.5,
    )


def append_verdict(log: FaultyLog, verdict: VerdictRecord, now: float | None = None) -> int:
    log.clock.now = log.clock.now if now is None else now
    key = session_key(verdict.service, verdict.session_id)
    return append_bytes(log, key, encode(verdict))


def shown(log: FaultyLog, evaluator: str) -> list[Signal]:
    return [each for each in signals(log) if each.evaluator == evaluator]
