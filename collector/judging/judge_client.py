"""Requests to models within limits: cache, concurrency, budget, attempts. Runs in the judge process.

Prompts to a judge and texts to be embedded take the same way.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from msgspec.structs import replace as with_fields

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
from evaluators.judging.calls import added
from evaluators.judging.embedding import Embedded
from evaluators.judging.prompt import Answer, JudgeError, Prompt

_T = TypeVar("_T", Answer, Embedded)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between attempts, unless the provider asks for more."""
LONGEST_ASKED = 120.0  # seconds that a provider may ask for
SPREAD = 0.25  # share of a pause by which it is made longer at random: those who wait do not come back at once
PATIENCE = 4  # times as many attempts, as long as the model answers others


class Provider(Protocol):
    """Port to a judge model: one request, one answer (evaluators/providers/litellm.py)."""

    def ceiling(self, prompt: Prompt, model: str) -> float:
        """USD that the answer costs at most."""
        ...

    async def ask(self, prompt: Prompt, *, model: str, is_last: bool) -> Answer:
        """The answer, or a JudgeError; `is_last`: no attempt may follow."""
        ...


class Vectors(Protocol):
    """Port to hosted embeddings (evaluators/providers/litellm.py)."""

    @property
    def model(self) -> str: ...

    def ceiling(self, texts: Sequence[str]) -> float:
        """USD that the vectors cost at most."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded: ...


class BudgetGate:
    """Reserves budget in the main process before each call, and reports the call after it."""

    def __init__(self, send: Callable[[FromJudge], None]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[bool]] = {}

    async def reserve(self, job: int, usd: float) -> int:
        """Wait for the reservation of a call for this job; returns the number of the call.

        Raises JudgeError: of type `budget`, if the rest of the budget is smaller.
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
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(granted)

    def finished(self, call: CallFinished) -> None:
        """The call is over: the main process counts what it cost."""
        self._send(call)


@dataclass(kw_only=True)
class JudgeClientPool:
    """All requests of this process; at most `judge.concurrency` are under way at once."""

    provider: Provider
    gate: BudgetGate
    cache: AnswerCache
    judge: JudgeConfig
    vectors: Vectors | None = None
    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.judge.concurrency)
        self._answered: Counter[str] = Counter()  # by model: how many requests it has answered
        self._unwritten: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def for_subject(self, owner: str, job: int, again: str = "") -> SubjectClient:
        return SubjectClient(self, owner, job, again)

    def written(self, owner: str) -> None:
        """The subject's verdict is in the log: other subjects may use its answers, too."""
        for digest, model in self._unwritten.pop(owner, ()):
            self.cache.written(digest, model)

    async def ask(self, prompt: Prompt, model: str | None, owner: str, job: int) -> Answer:
        name = model or self.judge.model or ""
        entry = self.cache.get(prompt.digest, name, owner)
        if entry is not None and prompt.is_answered_by(entry.answer.text):
            if entry.owner == owner:
                self._unwritten[owner].append((prompt.digest, name))
            return _answer(entry)
        answer = await self._with_retries(
            name,
            self.provider.ceiling(prompt, name),
            lambda is_last: self.provider.ask(prompt, model=name, is_last=is_last),
            job=job,
            is_readable=lambda answer: prompt.is_answered_by(answer.text),
        )
        if prompt.is_answered_by(answer.text):  # else the next subject would fail of it, too
            self.cache.put(prompt.digest, name, CachedAnswer(answer=answer, owner=owner))
            self._unwritten[owner].append((prompt.digest, name))
        return answer

    async def embed(self, texts: Sequence[str], owner: str, job: int) -> Embedded:
        vectors = self.vectors
        if vectors is None:
            raise JudgeError(type="provider_error", message="no hosted embedder is configured")
        digests = {text: text_digest(text) for text in texts}
        entries = {text: self.cache.get(digests[text], vectors.model, owner) for text in digests}
        missing = tuple(text for text, entry in entries.items() if entry is None)
        if missing:
            answer = await self._with_retries(
                vectors.model, vectors.ceiling(missing), lambda _: vectors.embed(missing), job=job
            )
            for text, entry in zip(
                missing, vector_answers(answer, vectors.model, owner), strict=True
            ):
                self.cache.put(digests[text], vectors.model, entry)
                entries[text] = entry
        paid = {
            text: entry.answer
            for text, entry in entries.items()
            if entry is not None and entry.owner == owner
        }
        self._unwritten[owner] += [(digests[text], vectors.model) for text in paid]
        return Embedded(
            vectors=tuple(vector_of(entry) for text in texts if (entry := entries[text])),
            input_tokens=sum(each.input_tokens for each in paid.values()),
            cost_usd=added((each.cost_usd, 1) for each in paid.values()),
            cached=not paid,
        )

    async def _with_retries(
        self,
        model: str,
        ceiling: float,
        ask: Callable[[bool], Awaitable[_T]],
        *,
        job: int,
        is_readable: Callable[[_T], bool] = lambda _: True,
    ) -> _T:
        backoff = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        before = self._answered[model]
        for attempt in itertools.count(1):
            # Waiting for budget takes no place from a subject of another service.
            number = await self.gate.reserve(job, ceiling)
            async with self._slots:
                # As it is reported where it is not waited for: a provider may bill what comes too late.
                call = CallFinished(
                    id=number,
                    model=model,
                    result="provider_error",
                    seconds=0.0,
                    keep_reservation=True,
                )
                began = time.monotonic()
                try:
                    answer = await ask(attempt >= self.judge.attempts)
                    call = _answered(call, answer, is_readable=is_readable(answer))
                except JudgeError as error:
                    # A provider that answers others meanwhile only stumbles.
                    is_patient = self._answered[model] > before and error.type != "timeout"
                    most = self.judge.attempts * (PATIENCE if is_patient else 1)
                    goes_on = error.passing and attempt < most
                    result = "retry" if goes_on else _RESULTS.get(error.type, call.result)
                    call = with_fields(call, result=result, keep_reservation=error.billed)
                    if not goes_on:
                        raise
                    pause = self._pause(backoff.next(), error.retry_after)
                else:
                    self._answered[model] += 1
                    return answer
                finally:
                    self.gate.finished(with_fields(call, seconds=time.monotonic() - began))
            await self.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause(self, own: float, asked: float | None) -> float:
        """Seconds to wait; those that got the same number do not all come back at once."""
        if asked is None or asked <= own:
            return own
        return min(asked, LONGEST_ASKED) * (1 + SPREAD * self.chance())


@dataclass(frozen=True, slots=True)
class SubjectClient:
    """The client of one subject: the port of `evaluators.judging.prompt`, and of hosted embeddings."""

    pool: JudgeClientPool
    owner: str
    job: int
    again: str = ""
    """By what questions that are asked once more differ from those of before in the cache."""

    async def __call__(self, prompt: Prompt, *, model: str | None) -> Answer:
        prompt = replace(prompt, digest=prompt.digest + self.again)
        return await self.pool.ask(prompt, model, self.owner, self.job)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        return await self.pool.embed(texts, self.owner, self.job)


_RESULTS: Mapping[str, Result] = {"rate_limited": "rate_limited", "timeout": "timeout"}
"""By the type of an error, what a request is reported as; others as `provider_error`."""


def _answered(call: CallFinished, answer: Answer | Embedded, *, is_readable: bool) -> CallFinished:
    return with_fields(
        call,
        result="ok" if is_readable else "parse_error",
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens if isinstance(answer, Answer) else 0,
        usd=answer.cost_usd,
        keep_reservation=False,
    )


def _answer(entry: CachedAnswer) -> Answer:
    """The cached answer: it costs what it cost if the subject itself paid for it before a crash, else nothing."""
    if entry.owner is not None:
        return entry.answer
    return replace(entry.answer, input_tokens=0, output_tokens=0, cost_usd=0.0, cached=True)
