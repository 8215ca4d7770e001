"""Asking within limits: cache, concurrency, budget, attempts. Runs in the judge process.

Questions to a judge and texts to be embedded take the same way.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from collector.config.tree import JudgeConfig
from collector.judging.cache import AnswerCache, Entry
from collector.judging.frames import FromJudge, Result, Settled, Want
from collector.judging.vectors import entries_of, known_vector, text_digest
from evaluators.judging.answers import AnswerError, read_object
from evaluators.judging.client import Answer, JudgeError, Prompt
from evaluators.judging.embedding import Embedded

_T = TypeVar("_T", Answer, Embedded)
PASSING = frozenset({"rate_limited", "timeout"})
"""What may pass: only these are tried again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds; a provider that asks for a longer pause than the longest is given that."""


class Provider(Protocol):
    """A way to the models: one request, one answer (evaluators/providers/litellm.py)."""

    def ceiling(self, prompt: Prompt, model: str) -> float:
        """USD that the answer costs at most."""
        ...

    async def ask(self, prompt: Prompt, *, model: str) -> Answer:
        """The answer, or a JudgeError."""
        ...


class Vectors(Protocol):
    """A way to hosted embeddings (evaluators/providers/litellm.py)."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    def ceiling(self, texts: Sequence[str]) -> float:
        """USD that the vectors cost at most."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector per text, or a JudgeError."""
        ...


class Gate:
    """The way to the budget, which lives in the main process: asked before each call, told after it."""

    def __init__(self, send: Callable[[FromJudge], None]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[bool]] = {}

    async def enter(self, usd: float) -> int:
        """Wait for leave; the number of the call.

        Raises:
            JudgeError: the budget does not hold it.
        """
        number = next(self._numbers)
        granted = self._asked[number] = asyncio.get_running_loop().create_future()
        self._send(Want(id=number, usd=usd))
        try:
            if not await granted:
                raise JudgeError(type="budget", message="the budget is spent")
        finally:
            self._asked.pop(number, None)
        return number

    def answer(self, number: int, *, ok: bool) -> None:
        """What the main process said."""
        asked = self._asked.get(number)
        if asked is not None and not asked.done():
            asked.set_result(ok)

    def leave(self, settled: Settled) -> None:
        """The call is over."""
        self._send(settled)


class Asker:
    """All questions of this process; at most `judge.concurrency` requests are under way."""

    def __init__(
        self,
        *,
        provider: Provider,
        gate: Gate,
        cache: AnswerCache,
        judge: JudgeConfig,
        vectors: Vectors | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._provider = provider
        self._vectors = vectors
        self._gate = gate
        self._cache = cache
        self._model = judge.model or ""
        self._attempts = judge.attempts
        self._slots = asyncio.Semaphore(judge.concurrency)
        self._pause = pause
        self._unwritten: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def about(self, owner: str) -> OwnAsk:
        """The way to the judge for one subject."""
        return OwnAsk(self, owner)

    def written(self, owner: str) -> None:
        """The subject's verdict is in the log: its answers are everybody's."""
        for digest, model in self._unwritten.pop(owner, ()):
            self._cache.written(digest, model)

    async def ask(self, prompt: Prompt, model: str | None, owner: str) -> Answer:
        """See `evaluators.judging.client.Ask`."""
        name = model or self._model
        entry = self._cache.get(prompt.digest, name, owner)
        if entry is not None:
            if entry.owner == owner:
                self._unwritten[owner].append((prompt.digest, name))
            return _known(entry)
        answer = await self._tried(
            name,
            self._provider.ceiling(prompt, name),
            lambda: self._provider.ask(prompt, model=name),
            is_readable=lambda given: prompt.schema is None or _is_readable(given.text),
        )
        self._cache.put(prompt.digest, name, _entry(answer, owner))
        self._unwritten[owner].append((prompt.digest, name))
        return answer

    async def embed(self, texts: Sequence[str], owner: str) -> Embedded:
        """See `evaluators.embedding.Embed`. Each text is remembered by itself."""
        vectors = self._vectors
        if vectors is None:
            raise JudgeError(type="provider_error", message="no hosted embedder is configured")
        digests = {text: text_digest(text) for text in texts}
        found = {text: self._cache.get(digests[text], vectors.model, owner) for text in digests}
        missing = tuple(text for text, entry in found.items() if entry is None)
        if missing:
            answer = await self._tried(
                vectors.model, vectors.ceiling(missing), lambda: vectors.embed(missing)
            )
            for text, entry in zip(missing, entries_of(answer, vectors.model, owner), strict=True):
                self._cache.put(digests[text], vectors.model, entry)
                found[text] = entry
        paid = {text: entry for text, entry in found.items() if entry and entry.owner == owner}
        self._unwritten[owner] += [(digests[text], vectors.model) for text in paid]
        costs = [entry.cost_usd for entry in paid.values()]
        return Embedded(
            vectors=tuple(known_vector(entry) for text in texts if (entry := found[text])),
            input_tokens=sum(entry.input_tokens for entry in paid.values()),
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            cached=not paid,
        )

    async def _tried(
        self,
        model: str,
        ceiling: float,
        ask: Callable[[], Awaitable[_T]],
        *,
        is_readable: Callable[[_T], bool] = lambda _: True,
    ) -> _T:
        attempt = 1
        while True:
            is_last = attempt >= self._attempts
            try:
                return await self._once(model, ceiling, ask, is_readable, is_last=is_last)
            except JudgeError as error:
                if error.type not in PASSING or is_last:
                    raise
                wanted = max(error.retry_after or 0.0, FIRST_PAUSE * 2 ** (attempt - 1))
            await self._pause(min(wanted, LONGEST_PAUSE))
            attempt += 1

    async def _once(
        self,
        model: str,
        ceiling: float,
        ask: Callable[[], Awaitable[_T]],
        is_readable: Callable[[_T], bool],
        *,
        is_last: bool,
    ) -> _T:
        async with self._slots:
            number = await self._gate.enter(ceiling)
            began = time.monotonic()
            settled = _unanswered(number, model, None, is_last=is_last)
            try:
                answer = await ask()
                settled = _answered(number, model, answer, readable=is_readable(answer))
            except JudgeError as error:
                settled = _unanswered(number, model, error, is_last=is_last)
                raise
            finally:
                seconds = time.monotonic() - began
                self._gate.leave(msgspec.structs.replace(settled, seconds=seconds))
        return answer


class OwnAsk:
    """The `Ask` port for one subject."""

    def __init__(self, asker: Asker, owner: str) -> None:
        self._asker = asker
        self._owner = owner

    async def __call__(self, prompt: Prompt, *, model: str | None) -> Answer:
        """See `evaluators.judging.client.Ask`."""
        return await self._asker.ask(prompt, model, self._owner)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `evaluators.embedding.Embed`."""
        return await self._asker.embed(texts, self._owner)


def _is_readable(text: str) -> bool:
    try:
        read_object(text)
    except AnswerError:
        return False
    return True


def _answered(number: int, model: str, answer: Answer | Embedded, *, readable: bool) -> Settled:
    return Settled(
        id=number,
        model=model,
        result="ok" if readable else "parse_error",
        seconds=0.0,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens if isinstance(answer, Answer) else 0,
        usd=answer.cost_usd,
    )


def _unanswered(number: int, model: str, error: JudgeError | None, *, is_last: bool) -> Settled:
    kind = "provider_error" if error is None else error.type
    result: Result = "rate_limited" if kind == "rate_limited" else "provider_error"
    if kind == "timeout":
        result = "timeout"
    if kind in PASSING and not is_last:
        result = "retry"
    # A provider may bill an answer that came too late, or was not waited for.
    kept = kind == "timeout" or error is None
    return Settled(id=number, model=model, result=result, seconds=0.0, kept=kept)


def _entry(answer: Answer, owner: str) -> Entry:
    return Entry(
        text=answer.text,
        model=answer.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_usd=answer.cost_usd,
        owner=owner,
    )


def _known(entry: Entry) -> Answer:
    """An own payment from before a crash costs what it cost; another's costs nothing."""
    if entry.owner is not None:
        return Answer(
            text=entry.text,
            model=entry.model,
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            cost_usd=entry.cost_usd,
        )
    return Answer(
        text=entry.text,
        model=entry.model,
        input_tokens=0,
        output_tokens=0,
        cost_usd=0.0,
        cached=True,
    )
