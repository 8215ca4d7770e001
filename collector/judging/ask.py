"""Asking within limits: cache, concurrency, budget, attempts. Runs in the judge process."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from collector.config import Judge
from collector.judging.cache import AnswerCache, Entry
from collector.judging.frames import FromJudge, Result, Settled, Want
from evaluators.prompts.ask import Answer, JudgeError, Prompt

PASSING = frozenset({"rate_limited", "timeout"})
"""What may pass: only these are tried again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


class Provider(Protocol):
    """A way to the models: one request, one answer (evaluators/providers/litellm.py)."""

    def ceiling(self, prompt: Prompt, model: str) -> float:
        """USD that the answer costs at most."""
        ...

    async def ask(self, prompt: Prompt, *, model: str) -> Answer:
        """The answer, or a JudgeError."""
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
        judge: Judge,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._provider = provider
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
        """See `evaluators.prompts.ask.Ask`."""
        name = model or self._model
        entry = self._cache.get(prompt.digest, name, owner)
        if entry is not None:
            if entry.owner == owner:
                self._unwritten[owner].append((prompt.digest, name))
            return _known(entry)
        answer = await self._tried(prompt, name)
        self._cache.put(prompt.digest, name, _entry(answer, owner))
        self._unwritten[owner].append((prompt.digest, name))
        return answer

    async def _tried(self, prompt: Prompt, model: str) -> Answer:
        attempt = 1
        while True:
            try:
                return await self._once(prompt, model, is_last=attempt >= self._attempts)
            except JudgeError as error:
                if error.type not in PASSING or attempt >= self._attempts:
                    raise
            await self._pause(min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE))
            attempt += 1

    async def _once(self, prompt: Prompt, model: str, *, is_last: bool) -> Answer:
        async with self._slots:
            number = await self._gate.enter(self._provider.ceiling(prompt, model))
            began = time.monotonic()
            result: Answer | JudgeError | None = None
            try:
                result = answer = await self._provider.ask(prompt, model=model)
            except JudgeError as error:
                result = error
                raise
            finally:
                settled = _settled(number, model, result, is_last=is_last)
                settled = msgspec.structs.replace(settled, seconds=time.monotonic() - began)
                self._gate.leave(settled)
        return answer


class OwnAsk:
    """The `Ask` port for one subject."""

    def __init__(self, asker: Asker, owner: str) -> None:
        self._asker = asker
        self._owner = owner

    async def __call__(self, prompt: Prompt, *, model: str | None) -> Answer:
        """See `evaluators.prompts.ask.Ask`."""
        return await self._asker.ask(prompt, model, self._owner)


def _settled(
    number: int, model: str, answer: Answer | JudgeError | None, *, is_last: bool
) -> Settled:
    if isinstance(answer, Answer):
        return Settled(
            id=number,
            model=model,
            result="ok",
            seconds=0.0,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            usd=answer.cost_usd,
        )
    kind = "provider_error" if answer is None else answer.type
    result: Result = "rate_limited" if kind == "rate_limited" else "provider_error"
    if kind == "timeout":
        result = "timeout"
    if kind in PASSING and not is_last:
        result = "retry"
    # A provider may bill an answer that came too late, or was not waited for.
    kept = kind == "timeout" or answer is None
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
