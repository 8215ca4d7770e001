"""What a worker does with one job: the same inline and in a process of its own."""

from __future__ import annotations

import logging

import msgspec

from collector.config import plan as planning
from collector.config.tree import Config
from collector.pool.port import ReadJob, ScoreJob
from evaluators.dialects.content.sessions import Keys
from evaluators.dialects.read import read_trace
from evaluators.expectations import Expectation, Expectations
from evaluators.model import Closed, Outcome, Trace
from evaluators.plan import Plan
from evaluators.resources import Embedder
from evaluators.run import score_trace

log = logging.getLogger(__name__)

Job = ReadJob | ScoreJob
UNKNOWN_SERVICE = "unknown_service"


class Bench:
    """Everything a job needs, made once per worker."""

    def __init__(
        self,
        *,
        plan: Plan,
        keys: Keys,
        embedder: Embedder | None,
        expectations: Expectations | None = None,
    ) -> None:
        self._plan = plan
        self._keys = keys
        self._embedder = embedder
        self._expectations = expectations

    @classmethod
    def of(cls, config: Config, plan: Plan | None = None) -> Bench:
        """As configured. Loads the embedder when an evaluator needs it."""
        plan = plan or planning.plan(config)
        embeds = any(each.spec.method == "embedding" for each in plan.trace)
        return cls(
            plan=plan,
            keys=planning.read_keys(config),
            embedder=planning.embedder(config) if embeds else None,
            expectations=planning.expectations(config),
        )

    def read(self, job: ReadJob) -> Trace:
        """The normalised trace; one that cannot be read says so in `unread` and keeps its id."""
        try:
            return read_trace(
                job.pieces, trace_id=job.trace_id.hex(), closed=job.closed, keys=self._keys
            )
        except Exception as error:  # noqa: BLE001 - one trace must not end the worker
            log.warning("trace `%s` cannot be read: %r", job.trace_id.hex(), error)
            return bare_trace(job.trace_id, job.closed, "undecodable")

    def score(self, job: ScoreJob) -> tuple[Outcome, ...]:
        """The outcomes of every due evaluator."""
        unread = job.trace.unread
        if unread is not None:
            message = f"the trace could not be read: {unread}"
            return planning.failed(self._plan, unread, message, job.only)
        return score_trace(
            self._plan,
            job.trace,
            history=job.history,
            embedder=self._embedder,
            expectation=self._expected(job),
            only=job.only,
        )

    def _expected(self, job: ScoreJob) -> Expectation | None:
        if self._expectations is None:
            return None
        trace = job.trace
        return self._expectations.find(
            trace_id=trace.trace_id,
            session_id=trace.session_id,
            task=trace.task_id,
            turn=job.turn,
            text=trace.input,
        )


def bare_trace(trace_id: bytes, closed: Closed, unread: str) -> Trace:
    """A trace of which nothing but its id is known."""
    text = trace_id.hex()
    return Trace(
        trace_id=text,
        service=UNKNOWN_SERVICE,
        agent=UNKNOWN_SERVICE,
        session_id=text,
        session_source="trace",
        closed=closed,
        gaps=("no_root", "no_session", "no_content"),
        unread=unread,
    )


encode_job_into = msgspec.msgpack.Encoder().encode_into
decode_job = msgspec.msgpack.Decoder(Job).decode
