"""What the judge process does with one job: the library's judging, asked within our limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from collector.config import plan as planning
from collector.config.tree import Config
from collector.judging.ask import Asker, OwnAsk
from collector.judging.frames import Done, Job, SessionJob, TraceJob
from evaluators.expectations import Expectation, Expectations
from evaluators.judging.embedding import embed_trace
from evaluators.judging.judge import Verdict, judge_session, judge_trace
from evaluators.model import Failure, Outcome, Session, Trace
from evaluators.outcome import failed
from evaluators.plan import Configured, Plan, is_embedded

log = logging.getLogger(__name__)
_trace = msgspec.msgpack.Decoder(Trace).decode


class JudgeBench:
    """Everything a job needs, made once per process."""

    def __init__(
        self, *, plan: Plan, config: Config, asker: Asker, expectations: Expectations | None
    ) -> None:
        self._due = {
            scope: [each for each in plan.judged if each.spec.scope == scope]
            for scope in ("trace", "session")
        }
        self._embedded = [each for each in self._due["trace"] if is_embedded(each)]
        self._judged = [each for each in self._due["trace"] if not is_embedded(each)]
        self._config = config.judge
        self._embedder = config.embedder.model or ""
        self._asker = asker
        self._expectations = expectations

    @classmethod
    def of(cls, config: Config, asker: Asker, only: Sequence[str] | None) -> JudgeBench:
        """As configured."""
        return cls(
            plan=planning.plan(config, only=only),
            config=config,
            asker=asker,
            expectations=planning.expectations(config),
        )

    async def run(self, job: Job) -> Done:
        """The outcomes of every due evaluator; never raises for what a job holds."""
        scope = "trace" if isinstance(job, TraceJob) else "session"
        try:
            verdict = await (self._trace(job) if isinstance(job, TraceJob) else self._session(job))
        except Exception as error:  # one subject must not end the judge
            log.exception("job of `%s` failed", scope)
            failure = Failure(type="exception", message=type(error).__name__)
            verdict = Verdict(outcomes=_failed(self._due[scope], failure))
        return Done(
            id=job.id,
            outcomes=verdict.outcomes,
            calls=verdict.calls,
            cost_usd=verdict.cost_usd or 0.0,
        )

    async def _trace(self, job: TraceJob) -> Verdict:
        trace = _trace(job.trace)
        ask = self._asker.about(job.owner)
        expectation = self._expected(trace, job.turn)
        async with asyncio.TaskGroup() as both:
            judged = both.create_task(self._judge(trace, ask, expectation))
            embedded = both.create_task(
                embed_trace(
                    self._embedded,
                    trace,
                    ask.embed,
                    model=self._embedder,
                    history=job.history,
                    expectation=expectation,
                )
            )
        return _together(judged.result(), embedded.result())

    async def _judge(self, trace: Trace, ask: OwnAsk, expectation: Expectation | None) -> Verdict:
        if not self._judged:
            return Verdict(outcomes=())
        return await judge_trace(
            self._judged,
            trace,
            ask,
            calls=self._config.calls,
            max_prompt=self._config.max_prompt,
            expectation=expectation,
        )

    async def _session(self, job: SessionJob) -> Verdict:
        traces = [_trace(each) for each in job.traces]
        session = Session(
            service=job.service,
            session_id=job.session_id,
            agent=traces[-1].agent if traces else job.service,
            closed=job.closed,
        )
        return await judge_session(
            self._due["session"],
            session,
            traces,
            self._asker.about(job.owner),
            calls=self._config.calls,
            max_prompt=self._config.max_prompt,
            expectations=self._expected_of(traces),
        )

    def _expected_of(self, traces: Sequence[Trace]) -> dict[str, Expectation] | None:
        if self._expectations is None:
            return None
        turns = [each for each in traces if each.is_turn]
        found = {each.trace_id: self._expected(each, at) for at, each in enumerate(turns, 1)}
        return {name: each for name, each in found.items() if each is not None}

    def _expected(self, trace: Trace, turn: int | None) -> Expectation | None:
        if self._expectations is None:
            return None
        return self._expectations.find(
            trace_id=trace.trace_id,
            session_id=trace.session_id,
            task=trace.task_id,
            turn=turn,
            text=trace.input,
        )


def _together(one: Verdict, other: Verdict) -> Verdict:
    """The verdict of both; where a price is not known the known part is what counts as spent."""
    return Verdict(
        outcomes=(*one.outcomes, *other.outcomes),
        models=(*one.models, *other.models),
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_usd=(one.cost_usd or 0.0) + (other.cost_usd or 0.0),
    )


def _failed(judged: Sequence[Configured], failure: Failure) -> tuple[Outcome, ...]:
    return tuple(failed(each, failure) for each in judged)
