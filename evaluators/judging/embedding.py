"""Embedding evaluators over hosted vectors: an evaluator runs on the vectors that are there, so no thread waits.

It is run once to learn which texts it embeds; those without a vector are requested, and it is run again. Only calls of
`EmbeddingClient` wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from evaluators.expectations import Expectation
from evaluators.judge_use import JudgeUse
from evaluators.judging.calls import added, share_of
from evaluators.judging.judge import Verdict
from evaluators.judging.prompt import SKIPPED, JudgeError
from evaluators.model import Failure, Outcome, Previous, Trace
from evaluators.plan import Configured, Plan
from evaluators.resources import Vector
from evaluators.run import failed, failure_of, score_trace, skipped

MAX_ROUNDS = 4  # requests about one trace: an evaluator whose texts depend on earlier vectors may need more than one


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors and their cost."""

    vectors: tuple[Sequence[float], ...]  # one per text, in order
    input_tokens: int
    cost_usd: float | None  # None: the price is not known
    cached: bool = False  # all of them were read from a cache: they cost nothing now


class EmbeddingClient(Protocol):
    """Embeds texts. Retries, limits, budgets and caches are the implementation's."""

    async def __call__(self, texts: Sequence[str]) -> Embedded:
        """One vector per text.

        Raises:
            JudgeError: There are none.
        """
        ...


async def embed_trace(
    due: Sequence[Configured],
    trace: Trace,
    client: EmbeddingClient,
    *,
    model: str,
    history: Sequence[Previous] = (),
    expectation: Expectation | None = None,
) -> Verdict:
    """The outcomes of the embedding evaluators of a trace; never raises for what a provider or an evaluator does.

    Args:
        due: Trace evaluators that embed and ask no judge.
        trace: The subject.
        client: The way to the hosted model.
        model: Its name.
        history: The traces before it in its session, oldest first; the newest three are looked at.
        expectation: What is expected of the trace; None when nothing is.
    """
    vectors: dict[str, Sequence[float]] = {}
    states = [_EmbeddedEvaluator(configured=each, model=model, vectors=vectors) for each in due]
    answers: list[tuple[Embedded, tuple[str, ...]]] = []
    calls = 0
    while True:
        for state in states:
            if state.outcome is None:
                state.run(trace, history, expectation)
        open_states = [state for state in states if state.outcome is None]
        if not open_states:
            break
        if calls >= MAX_ROUNDS:
            _end(open_states, Failure(type="overload", message=f"more than {MAX_ROUNDS} requests"))
            break
        texts = tuple(dict.fromkeys(text for state in open_states for text in state.missing))
        calls += 1
        try:
            answer = await client(texts)
        except JudgeError as error:
            _end(open_states, error)
            break
        except Exception as error:  # noqa: BLE001 - whatever breaks, every due evaluator has its outcome
            _end(open_states, failure_of(error))
            break
        vectors.update(zip(texts, answer.vectors, strict=True))
        answers.append((answer, tuple(state.name for state in open_states)))
    return Verdict(
        outcomes=tuple(state.with_use(answers) for state in states),
        calls=calls,
        cost_usd=added((answer.cost_usd, 1) for answer, _ in answers),
    )


@dataclass(slots=True, kw_only=True)
class _EmbeddedEvaluator:
    """One evaluator, and the embedder that it is given: it knows some vectors and notes the texts of the others."""

    configured: Configured
    model: str
    vectors: Mapping[str, Sequence[float]]
    missing: dict[str, None] = field(default_factory=dict[str, None])
    outcome: Outcome | None = None
    compared: tuple[str, ...] = ()
    expectation: str | None = None

    @property
    def name(self) -> str:
        return self.configured.spec.name

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors. Raises LookupError: some are not known yet."""
        self.missing |= dict.fromkeys(text for text in texts if text not in self.vectors)
        if self.missing:
            raise LookupError("not embedded yet")
        return [self.vectors[text] for text in texts]

    def run(
        self, trace: Trace, history: Sequence[Previous], expectation: Expectation | None
    ) -> None:
        self.missing = {}
        (outcome,) = score_trace(
            Plan(trace=(self.configured,)),
            trace,
            history=history,
            embedder=self,
            expectation=expectation,
        )
        self.compared, self.expectation = outcome.compared, outcome.expectation
        # An outcome without all vectors does not count, even if the evaluator caught the LookupError.
        if not self.missing:
            self.outcome = outcome

    def with_use(self, answers: Sequence[tuple[Embedded, tuple[str, ...]]]) -> Outcome:
        assert self.outcome is not None  # noqa: S101 - every way out of the loop gives one
        mine = [(answer, owners) for answer, owners in answers if self.name in owners]
        if not mine:
            return self.outcome
        use = JudgeUse(
            model=self.model,
            calls=len(mine),
            input_tokens=sum(
                share_of(answer.input_tokens, owners, self.name) for answer, owners in mine
            ),
            output_tokens=0,
            cost_usd=added((answer.cost_usd, len(owners)) for answer, owners in mine),
            cached=all(answer.cached for answer, _ in mine),
        )
        return replace(self.outcome, judge=use)


def _end(states: Sequence[_EmbeddedEvaluator], why: Failure | JudgeError) -> None:
    for state in states:
        more = {"compared": state.compared, "expectation": state.expectation}
        if isinstance(why, JudgeError) and why.type in SKIPPED:
            state.outcome = skipped(state.configured, why.type, **more)
            continue
        failure = why.failure if isinstance(why, JudgeError) else why
        state.outcome = failed(state.configured, failure, **more)
