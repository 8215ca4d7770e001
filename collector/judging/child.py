"""The judge process: takes jobs and returns verdicts over one socket, and ends with it. Only it imports litellm.

python -m collector.judging.child FD
"""

import asyncio
import dataclasses
import logging
import socket
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import msgspec

from collector.base.frames import LENGTH, pack_frame, parent_socket
from collector.base.heap import trimmed_heap
from collector.base.plugins import limit_plugins
from collector.base.supervisor import reason_of
from collector.config.plan import PlanSettings, checked_plan, expectations_from
from collector.config.tree import Config
from collector.judging.answer_cache import AnswerCache
from collector.judging.budget import in_sample
from collector.judging.judge_client import BudgetGate, JudgeClientPool, SubjectClient
from collector.judging.port import (
    BudgetReply,
    CacheFailed,
    FromJudge,
    Job,
    JobDone,
    SessionJob,
    Setup,
    TraceJob,
    VerdictWritten,
    decode_setup,
    decode_to_judge,
    encode,
)
from collector.judging.running import JOB, Watchdog
from evaluators.expectations import Expectation
from evaluators.judging.calls import added
from evaluators.judging.embedding import embed_trace
from evaluators.judging.judge import Verdict, judge_session, judge_trace
from evaluators.model import Failure, Outcome, Session, Trace
from evaluators.plan import Configured, is_embedded, is_third_party
from evaluators.providers.litellm import LiteLlmEmbedder, LiteLlmJudge
from evaluators.run import failed

NICENESS = 5
"""It mostly waits for a model: more urgent than the workers (10), less than the service (0)."""
TWICE = 0.5
"""The share of subjects beyond the sample that are asked about twice: of the 40 of a drop, the 20 that kappa needs."""
_log = logging.getLogger(__name__)
_trace = msgspec.msgpack.Decoder(Trace).decode


def main() -> None:
    with trimmed_heap():
        asyncio.run(_work(parent_socket(NICENESS)))


async def _work(link: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=link)
    try:
        setup = decode_setup(await receive_frame(reader))
        if setup.limits:
            limit_plugins()
        else:  # a call of litellm that is cancelled, as the end does, leaves some behind
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        await _Process(setup, writer).run(reader)
    except* (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


class _Process:
    def __init__(self, setup: Setup, writer: asyncio.StreamWriter) -> None:
        config = Config.model_validate_json(setup.config)
        judge = config.judge
        self._writer = writer
        provider = LiteLlmJudge(
            timeout=judge.timeout,
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
            base_url=judge.base_url,
            api_key=setup.api_key,
            price=judge.price and (judge.price.input, judge.price.output),
        )
        folder = Path(setup.folder)
        _ensure_temporary_folder(folder)
        provider.load()
        self._gate = BudgetGate(self._send)
        cache = AnswerCache(folder, judge.cache, self._cache_failed)
        self._clients = JudgeClientPool(
            provider=provider,
            gate=self._gate,
            cache=cache,
            judge=judge,
            vectors=_vectors(config, setup),
        )
        judged = checked_plan(setup.plan, setup.judged).judged
        self._watch = None
        if setup.limits:
            self._watch = Watchdog(folder, setup.limits)
            judged = tuple(map(self._watch.watched, judged))
        self._runner = JudgeJobRunner(config, self._clients, judged, setup.plan)
        self._owners: dict[int, str] = {}

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Answer until the end of the stream."""
        self._writer.write(pack_frame(b"ready"))
        async with asyncio.TaskGroup() as jobs:
            while (
                True
            ):  # until the main process ends, as an error, which cancels the jobs under way
                self._take(await receive_frame(reader), jobs)

    def _take(self, payload: bytes, jobs: asyncio.TaskGroup) -> None:
        frame = decode_to_judge(payload)
        if isinstance(frame, BudgetReply):
            self._gate.reply(frame.id, granted=frame.granted)
        elif isinstance(frame, VerdictWritten):
            owner = self._owners.pop(frame.id, None)
            if owner is not None:
                self._clients.written(owner)
        else:
            self._owners[frame.id] = frame.owner
            jobs.create_task(self._judge(frame))

    async def _judge(self, job: Job) -> None:
        JOB.set(job.id)
        done = await self._runner.run(job)
        late = () if self._watch is None else self._watch.late.pop(job.id, ())
        self._send(msgspec.structs.replace(done, late=tuple(late)))

    def _cache_failed(self, error: Exception) -> None:
        self._send(CacheFailed(reason=reason_of(error), message=str(error)))

    def _send(self, frame: FromJudge) -> None:
        if not self._writer.is_closing():  # else asyncio warns of every one
            self._writer.write(pack_frame(encode(frame)))


async def receive_frame(reader: asyncio.StreamReader) -> bytes:
    """The next payload. Raises asyncio.IncompleteReadError: the stream has ended."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return await reader.readexactly(length)


def _ensure_temporary_folder(folder: Path) -> None:
    """Litellm cannot be imported without one, and a container's root may be read-only."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = str(folder)


def _vectors(config: Config, setup: Setup) -> LiteLlmEmbedder | None:
    embedder, price = config.embedder, config.judge.price
    if embedder.kind != "litellm" or embedder.model is None:
        return None
    return LiteLlmEmbedder(
        embedder.model,
        timeout=config.judge.timeout,
        base_url=embedder.base_url,
        api_key=setup.embedder_api_key,
        price=price and (price.input, price.output),
    )


class JudgeJobRunner:
    """Runs jobs; made once per process, with everything that a job needs."""

    def __init__(
        self,
        config: Config,
        clients: JudgeClientPool,
        judged: Sequence[Configured],
        settings: PlanSettings,
    ) -> None:
        self._evaluators = judged
        self._config = config.judge
        self._embedder = config.embedder.model or ""
        self._clients = clients
        self._expectations = expectations_from(settings)

    async def run(self, job: Job) -> JobDone:
        """The outcomes of every due evaluator; whatever the job holds, it raises nothing."""
        scope = "trace" if isinstance(job, TraceJob) else "session"
        due = [
            each
            for each in self._evaluators
            if each.spec.scope == scope and each.spec.name not in job.without
        ]
        try:
            verdict = await self._verdict(job, due)
            twice = [each for each in due if not (is_embedded(each) or is_third_party(each))]
            if job.more and twice and in_sample(job.owner.encode(), TWICE):
                verdict = _with_again(verdict, await self._verdict(job, twice, "/again"))
        except Exception as error:  # noqa: BLE001 - one subject must not end the judge
            _log.exception("A job of scope `%s` failed", scope)
            failure = Failure(type="exception", message=type(error).__name__)
            verdict = Verdict(outcomes=tuple(failed(each, failure) for each in due))
        return JobDone(
            id=job.id,
            outcomes=verdict.outcomes,
            calls=verdict.calls,
            cost_usd=verdict.cost_usd or 0.0,
        )

    async def _verdict(self, job: Job, due: Sequence[Configured], again: str = "") -> Verdict:
        client = self._clients.for_subject(job.owner, job.id, again)
        if isinstance(job, TraceJob):
            return await self._trace(job, due, client)
        return await self._session(job, due, client)

    async def _trace(
        self, job: TraceJob, due: Sequence[Configured], client: SubjectClient
    ) -> Verdict:
        trace = _trace(job.trace)
        expectation = self._expectations.find(trace, job.turn)
        async with asyncio.TaskGroup() as both:
            judged = both.create_task(
                judge_trace(
                    [each for each in due if not is_embedded(each)],
                    trace,
                    client,
                    calls=self._config.calls,
                    max_prompt=self._config.max_prompt,
                    expectation=expectation,
                )
            )
            embedded = both.create_task(
                embed_trace(
                    [each for each in due if is_embedded(each)],
                    trace,
                    client.embed,
                    model=self._embedder,
                    history=job.history,
                    expectation=expectation,
                )
            )
        return _together(judged.result(), embedded.result())

    async def _session(
        self, job: SessionJob, due: Sequence[Configured], client: SubjectClient
    ) -> Verdict:
        traces = [_trace(each) for each in job.traces]
        session = Session(
            service=job.service,
            session_id=job.session_id,
            agent=traces[-1].agent if traces else job.service,
            closed=job.closed,
            turns=job.turns,
        )
        return await judge_session(
            due,
            session,
            traces,
            client,
            calls=self._config.calls,
            max_prompt=self._config.max_prompt,
            expectations=self._expected_of(traces),
        )

    def _expected_of(self, traces: Sequence[Trace]) -> dict[str, Expectation]:
        turns = [each for each in traces if each.is_turn]
        found = {
            each.trace_id: self._expectations.find(each, at) for at, each in enumerate(turns, 1)
        }
        return {trace_id: each for trace_id, each in found.items() if each is not None}


def _with_again(verdict: Verdict, second: Verdict) -> Verdict:
    """The first, with the price of the second and, beside each of its scores, that of the second."""
    others = {each.evaluator: each for each in second.outcomes}

    def both(each: Outcome) -> Outcome:
        other = others.get(each.evaluator)
        if each.judge is None or other is None or other.judge is None:
            return each
        one, more = each.judge, other.judge
        use = msgspec.structs.replace(
            one,
            calls=one.calls + more.calls,
            input_tokens=one.input_tokens + more.input_tokens,
            output_tokens=one.output_tokens + more.output_tokens,
            cost_usd=added([(one.cost_usd, 1), (more.cost_usd, 1)]),
            again=other.score,
        )
        return msgspec.structs.replace(each, judge=use)

    outcomes = tuple(map(both, verdict.outcomes))
    return dataclasses.replace(_together(verdict, second), outcomes=outcomes)


def _together(one: Verdict, other: Verdict) -> Verdict:
    """One verdict of two; where a price is unknown, the known part counts as spent."""
    return Verdict(
        outcomes=(*one.outcomes, *other.outcomes),
        calls=one.calls + other.calls,
        cost_usd=(one.cost_usd or 0.0) + (other.cost_usd or 0.0),
    )


if __name__ == "__main__":
    main()
