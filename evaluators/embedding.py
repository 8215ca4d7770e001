"""Embedding evaluators over hosted vectors: pure functions run on texts that were embedded before, no thread waits.

An evaluator is run; what it wanted embedded and was not is asked for, and it is run again. Nothing here waits for
anything but `Embed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from evaluators.expectations import Expectation
from evaluators.judging.calls import added
from evaluators.judging.client import SKIPPED, JudgeError
from evaluators.judging.judge import Verdict
from evaluators.model import Failure, JudgeUse, Outcome, Previous, Trace
from evaluators.outcome import failed, failure_of, skipped
from evaluators.plan import Configured, Plan
from evaluators.resources import Vector
from evaluators.run import score_trace

MAX_ROUNDS = 4
"""Requests about one trace: an evaluator whose wishes depend on vectors may ask again, not for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors, and what they cost."""

    vectors: tuple[Sequence[float], ...]
    """One per text, in order."""
    input_tokens: int
    cost_usd: float | None
    """None: the price is not known."""
    cached: bool = False
    """All of them were read from a cache: they cost nothing now."""


class Embed(Protocol):
    """Embeds texts. Retries, limits, budgets and caches are its business."""

    async def __call__(self, texts: Sequence[str]) -> Embedded:
        """One vector per text.

        Raises:
            JudgeError: There are none.
        """
        ...


async def embed_trace(
    due: Sequence[Configured],
    trace: Trace,
    embed: Embed,
    *,
    model: str,
    history: Sequence[Previous] = (),
    expectation: Expectation | None = None,
) -> Verdict:
    """The outcomes of the embedding evaluators of a trace; never raises for what a provider or an evaluator does.

    Args:
        due: Trace evaluators that embed and ask no judge.
        trace: The subject.
        embed: The way to the hosted model.
        model: Its name.
        history: The traces before it in its session, oldest first; the newest three are looked at.
        expectation: What is expected of the trace; None when nothing is.
    """
    seats = [_Seat(configured=each, lacks=_Known(model)) for each in due]
    vectors: dict[str, Sequence[float]] = {}
    answers: list[tuple[Embedded, tuple[str, ...]]] = []
    calls = 0
    while True:
        for seat in seats:
            if seat.outcome is None:
                seat.run(trace, vectors, history, expectation)
        open_seats = [seat for seat in seats if seat.outcome is None]
        if not open_seats:
            break
        if calls >= MAX_ROUNDS:
            _end(open_seats, Failure(type="overload", message=f"more than {MAX_ROUNDS} requests"))
            break
        texts = tuple(dict.fromkeys(text for seat in open_seats for text in seat.lacks.missing))
        calls += 1
        try:
            answer = await embed(texts)
        except JudgeError as error:
            _end(open_seats, error)
            break
        except Exception as error:  # noqa: BLE001 - whatever breaks, every due evaluator has its outcome
            _end(open_seats, failure_of(error))
            break
        vectors.update(zip(texts, answer.vectors, strict=True))
        answers.append((answer, tuple(seat.name for seat in open_seats)))
    return Verdict(
        outcomes=tuple(seat.settled(model, answers) for seat in seats),
        models=(model,) if answers else (),
        calls=calls,
        input_tokens=sum(answer.input_tokens for answer, _ in answers),
        cost_usd=added((answer.cost_usd, 1) for answer, _ in answers),
    )


class _Known:
    """An embedder of texts that were embedded before; it notes the others."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.missing: dict[str, None] = {}
        self.vectors: Mapping[str, Sequence[float]] = {}

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors.

        Raises:
            LookupError: some are not known yet.
        """
        self.missing |= dict.fromkeys(text for text in texts if text not in self.vectors)
        if self.missing:
            raise LookupError("not embedded yet")
        return [self.vectors[text] for text in texts]


@dataclass(slots=True, kw_only=True)
class _Seat:
    """One evaluator and what it still lacks."""

    configured: Configured
    lacks: _Known
    outcome: Outcome | None = None
    compared: tuple[str, ...] = field(default=())
    expected: str | None = None

    @property
    def name(self) -> str:
        return self.configured.spec.name

    def run(
        self,
        trace: Trace,
        vectors: Mapping[str, Sequence[float]],
        history: Sequence[Previous],
        expectation: Expectation | None,
    ) -> None:
        self.lacks.missing, self.lacks.vectors = {}, vectors
        (outcome,) = score_trace(
            Plan(trace=(self.configured,)),
            trace,
            history=history,
            embedder=self.lacks,
            expectation=expectation,
        )
        self.compared, self.expected = outcome.compared, outcome.expectation
        # What it returned without its vectors, if it caught our error, is worth nothing.
        if not self.lacks.missing:
            self.outcome = outcome

    def settled(self, model: str, answers: Sequence[tuple[Embedded, tuple[str, ...]]]) -> Outcome:
        assert self.outcome is not None  # noqa: S101 - every way out of the loop gives one
        mine = [(answer, owners) for answer, owners in answers if self.name in owners]
        if not mine:
            return self.outcome
        use = JudgeUse(
            model=model,
            calls=len(mine),
            input_tokens=sum(_share(answer, owners, self.name) for answer, owners in mine),
            output_tokens=0,
            cost_usd=added((answer.cost_usd, len(owners)) for answer, owners in mine),
            cached=all(answer.cached for answer, _ in mine),
        )
        return replace(self.outcome, judge=use)


def _share(answer: Embedded, owners: tuple[str, ...], name: str) -> int:
    each, rest = divmod(answer.input_tokens, len(owners))
    return each + (owners.index(name) < rest)


def _end(seats: Sequence[_Seat], why: Failure | JudgeError) -> None:
    for seat in seats:
        more = {"compared": seat.compared, "expectation": seat.expected}
        if isinstance(why, JudgeError) and why.type in SKIPPED:
            seat.outcome = skipped(seat.configured, why.type, **more)
            continue
        if isinstance(why, JudgeError):
            why = Failure(type=why.type, message=why.message[:500])
        seat.outcome = failed(seat.configured, why, **more)
