"""One job of the judge process: the judging of `evaluators`, over a client with the service's limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from collector.config.plan import expectations_from, plan_from
from collector.config.tree import Config
from collector.judging.judge_client import JudgeClientPool, SubjectClient
from collector.judging.port import Job, JobDone, SessionJob, TraceJob
from evaluators.expectations import Expectation, Expectations
from evaluators.judging.embedding import embed_trace
from evaluators.judging.judge import Verdict, judge_session, judge_trace
from evaluators.model import Failure, Outcome, Session, Trace
from evaluators.plan import Configured, Plan, is_embedded
from evaluators.run import failed

_log = logging.getLogger(__name__)
_trace = msgspec.msgpack.Decoder(Trace).decode


class JudgeJobRunner:
    """Runs jobs; made once per process, with everything that a job needs."""

    def __init__(
        self,
        *,
        plan: Plan,
        config: Config,
        clients: JudgeClientPool,
        expectations: Expectations | None,
    ) -> None:
        self._due = {
            scope: [each for each in plan.judged if each.spec.scope == scope]
            for scope in ("trace", "session")
        }
        self._embedded = [each for each in self._due["trace"] if is_embedded(each)]
        self._judged = [each for each in self._due["trace"] if not is_embedded(each)]
        self._config = config.judge
        self._embedder = config.embedder.model or ""
        self._clients = clients
        self._expectations = expectations

    @classmethod
    def of(
        cls, config: Config, clients: JudgeClientPool, only: Sequence[str] | None
    ) -> JudgeJobRunner:
        """The runner of the configured evaluators; `only` limits them."""
        return cls(
            plan=plan_from(config, only=only),
            config=config,
            clients=clients,
            expectations=expectations_from(config),
        )

    async def run(self, job: Job) -> JobDone:
        """The outcomes of every due evaluator; whatever the job holds, it raises nothing."""
        scope = "trace" if isinstance(job, TraceJob) else "session"
        try:
            verdict = await (self._trace(job) if isinstance(job, TraceJob) else self._session(job))
        except Exception as error:  # noqa: BLE001 - one subject must not end the judge
            _log.exception("A job of scope `%s` failed", scope)
            failure = Failure(type="exception", message=type(error).__name__)
            verdict = Verdict(outcomes=_failed(self._due[scope], failure))
        return JobDone(
            id=job.id,
            outcomes=verdict.outcomes,
            calls=verdict.calls,
            cost_usd=verdict.cost_usd or 0.0,
        )

    async def _trace(self, job: TraceJob) -> Verdict:
        trace = _trace(job.trace)
        client = self._clients.for_subject(job.owner)
        expectation = self._expected(trace, job.turn)
        async with asyncio.TaskGroup() as both:
            judged = both.create_task(self._judge(trace, client, expectation))
            embedded = both.create_task(
                embed_trace(
                    self._embedded,
                    trace,
                    client.embed,
                    model=self._embedder,
                    history=job.history,
                    expectation=expectation,
                )
            )
        return _together(judged.result(), embedded.result())

    async def _judge(
        self, trace: Trace, client: SubjectClient, expectation: Expectation | None
    ) -> Verdict:
        if not self._judged:
            return Verdict(outcomes=())
        return await judge_trace(
            self._judged,
            trace,
            client,
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
            self._clients.for_subject(job.owner),
            calls=self._config.calls,
            max_prompt=self._config.max_prompt,
            expectations=self._expected_of(traces),
        )

    def _expected_of(self, traces: Sequence[Trace]) -> dict[str, Expectation] | None:
        if self._expectations is None:
            return None
        turns = [each for each in traces if each.is_turn]
        expected = {each.trace_id: self._expected(each, at) for at, each in enumerate(turns, 1)}
        return {name: each for name, each in expected.items() if each is not None}

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
    """One verdict of two; where a price is unknown, the known part counts as spent."""
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
