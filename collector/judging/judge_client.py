"""Requests to models within limits: cache, concurrency, budget, attempts. Runs in the judge process.

Prompts to a judge and texts to be embedded take the same way.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from collector.base.retry import Backoff, Sleep
from collector.config.tree import JudgeConfig
from collector.judging.answer_cache import (
    AnswerCache,
    CachedAnswer,
    text_digest,
    vector_answers,
    vector_of,
)
from collector.judging.port import CallFinished, FromJudge, ReserveBudget, Result
from evaluators.judging.embedding import Embedded
from evaluators.judging.prompt import Answer, JudgeError, Prompt

_T = TypeVar("_T", Answer, Embedded)
RETRIED = frozenset({"rate_limited", "timeout"})
"""Types of `JudgeError` that may pass: only these are tried again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds; a provider that asks for a pause gets it, up to the longest."""


class Provider(Protocol):
    """Port to a judge model: one request, one answer (evaluators/providers/litellm.py)."""

    def ceiling(self, prompt: Prompt, model: str) -> float:
        """USD that the answer costs at most."""
        ...

    async def ask(self, prompt: Prompt, *, model: str) -> Answer:
        """The answer, or a JudgeError."""
        ...


class Vectors(Protocol):
    """Port to hosted embeddings (evaluators/providers/litellm.py)."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    def ceiling(self, texts: Sequence[str]) -> float:
        """USD that the vectors cost at most."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector per text, or a JudgeError."""
        ...


class BudgetGate:
    """Reserves budget in the main process before each call, and reports the call after it."""

    def __init__(self, send: Callable[[FromJudge], None]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[bool]] = {}

    async def reserve(self, job: int, usd: float) -> int:
        """Wait for the reservation of a call for this job; returns the number of the call.

        Raises:
            JudgeError: of type `budget`, if the rest of the budget is smaller.
        """
        number = next(self._numbers)
        granted = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send(ReserveBudget(id=number, job=job, usd=usd))
        try:
            if not await granted:
                raise JudgeError(type="budget", message="the budget is spent")
        finally:
            self._waiting.pop(number, None)
        return number

    def reply(self, number: int, *, granted: bool) -> None:
        """The main process has decided on a reservation."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(granted)

    def finished(self, call: CallFinished) -> None:
        """The call is over: the main process counts what it cost."""
        self._send(call)


class JudgeClientPool:
    """All requests of this process; at most `judge.concurrency` are under way at once."""

    def __init__(
        self,
        *,
        provider: Provider,
        gate: BudgetGate,
        cache: AnswerCache,
        judge: JudgeConfig,
        vectors: Vectors | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._provider = provider
        self._vectors = vectors
        self._gate = gate
        self._cache = cache
        self._model = judge.model or ""
        self._attempts = judge.attempts
        self._slots = asyncio.Semaphore(judge.concurrency)
        self._sleep = sleep
        self._unwritten: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def for_subject(self, owner: str, job: int) -> SubjectClient:
        """The client of one subject, which owns the answers it pays for, in this job."""
        return SubjectClient(self, owner, job)

    def written(self, owner: str) -> None:
        """The subject's verdict is in the log: other subjects may use its answers, too."""
        for digest, model in self._unwritten.pop(owner, ()):
            self._cache.written(digest, model)

    async def ask(self, prompt: Prompt, model: str | None, owner: str, job: int) -> Answer:
        """See `evaluators.judging.prompt.JudgeClient`."""
        name = model or self._model
        entry = self._cache.get(prompt.digest, name, owner)
        if entry is not None and prompt.is_answered_by(entry.text):
            if entry.owner == owner:
                self._unwritten[owner].append((prompt.digest, name))
            return _answer(entry)
        answer = await self._with_retries(
            name,
            self._provider.ceiling(prompt, name),
            lambda: self._provider.ask(prompt, model=name),
            job=job,
            is_readable=lambda answer: prompt.is_answered_by(answer.text),
        )
        if prompt.is_answered_by(answer.text):  # else the next subject would fail of it, too
            self._cache.put(prompt.digest, name, _cached(answer, owner))
            self._unwritten[owner].append((prompt.digest, name))
        return answer

    async def embed(self, texts: Sequence[str], owner: str, job: int) -> Embedded:
        """See `evaluators.judging.embedding.Embed`. Each text is cached by itself."""
        vectors = self._vectors
        if vectors is None:
            raise JudgeError(type="provider_error", message="no hosted embedder is configured")
        digests = {text: text_digest(text) for text in texts}
        entries = {text: self._cache.get(digests[text], vectors.model, owner) for text in digests}
        missing = tuple(text for text, entry in entries.items() if entry is None)
        if missing:
            answer = await self._with_retries(
                vectors.model, vectors.ceiling(missing), lambda: vectors.embed(missing), job=job
            )
            for text, entry in zip(
                missing, vector_answers(answer, vectors.model, owner), strict=True
            ):
                self._cache.put(digests[text], vectors.model, entry)
                entries[text] = entry
        paid = {text: entry for text, entry in entries.items() if entry and entry.owner == owner}
        self._unwritten[owner] += [(digests[text], vectors.model) for text in paid]
        costs = [entry.cost_usd for entry in paid.values()]
        return Embedded(
            vectors=tuple(vector_of(entry) for text in texts if (entry := entries[text])),
            input_tokens=sum(entry.input_tokens for entry in paid.values()),
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            cached=not paid,
        )

    async def _with_retries(
        self,
        model: str,
        ceiling: float,
        ask: Callable[[], Awaitable[_T]],
        *,
        job: int,
        is_readable: Callable[[_T], bool] = lambda _: True,
    ) -> _T:
        backoff = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        for attempt in itertools.count(1):
            is_last = attempt >= self._attempts
            # Waiting for budget takes no place from a subject of another service.
            number = await self._gate.reserve(job, ceiling)
            try:
                return await self._once(number, model, ask, is_readable, is_last=is_last)
            except JudgeError as error:
                if error.type not in RETRIED or is_last:
                    raise
                pause = max(error.retry_after or 0.0, backoff.next())
            await self._sleep(min(pause, LONGEST_PAUSE))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(
        self,
        number: int,
        model: str,
        ask: Callable[[], Awaitable[_T]],
        is_readable: Callable[[_T], bool],
        *,
        is_last: bool,
    ) -> _T:
        async with self._slots:
            began = time.monotonic()
            call = _unanswered(number, model, None, is_last=is_last)
            try:
                answer = await ask()
                call = _answered(number, model, answer, readable=is_readable(answer))
            except JudgeError as error:
                call = _unanswered(number, model, error, is_last=is_last)
                raise
            finally:
                seconds = time.monotonic() - began
                self._gate.finished(msgspec.structs.replace(call, seconds=seconds))
        return answer


class SubjectClient:
    """The client of one subject: the port of `evaluators.judging.prompt`, and of hosted embeddings."""

    def __init__(self, pool: JudgeClientPool, owner: str, job: int) -> None:
        self._pool = pool
        self._owner = owner
        self._job = job

    async def __call__(self, prompt: Prompt, *, model: str | None) -> Answer:
        """See `evaluators.judging.prompt.JudgeClient`."""
        return await self._pool.ask(prompt, model, self._owner, self._job)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `evaluators.judging.embedding.Embed`."""
        return await self._pool.embed(texts, self._owner, self._job)


def _answered(
    number: int, model: str, answer: Answer | Embedded, *, readable: bool
) -> CallFinished:
    return CallFinished(
        id=number,
        model=model,
        result="ok" if readable else "parse_error",
        seconds=0.0,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens if isinstance(answer, Answer) else 0,
        usd=answer.cost_usd,
    )


def _unanswered(
    number: int, model: str, error: JudgeError | None, *, is_last: bool
) -> CallFinished:
    kind = "provider_error" if error is None else error.type
    result: Result = "rate_limited" if kind == "rate_limited" else "provider_error"
    if kind == "timeout":
        result = "timeout"
    if kind in RETRIED and not is_last:
        result = "retry"
    # A provider may bill an answer that came too late, or was not waited for.
    keep = kind == "timeout" or error is None
    return CallFinished(id=number, model=model, result=result, seconds=0.0, keep_reservation=keep)


def _cached(answer: Answer, owner: str) -> CachedAnswer:
    return CachedAnswer(
        text=answer.text,
        model=answer.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_usd=answer.cost_usd,
        owner=owner,
    )


def _answer(entry: CachedAnswer) -> Answer:
    """The cached answer: it costs what it cost if the subject itself paid for it before a crash, else nothing."""
    is_own = entry.owner is not None
    return Answer(
        text=entry.text,
        model=entry.model,
        input_tokens=entry.input_tokens if is_own else 0,
        output_tokens=entry.output_tokens if is_own else 0,
        cost_usd=entry.cost_usd if is_own else 0.0,
        cached=not is_own,
    )
