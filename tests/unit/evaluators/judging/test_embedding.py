"""Embedding evaluators over vectors that are asked for, not computed."""

from collections.abc import Sequence

from evaluators.declare import evaluator
from evaluators.judging.embedding import MAX_ROUNDS, Embedded, embed_trace
from evaluators.judging.judge import Verdict
from evaluators.judging.prompt import JudgeError
from evaluators.model import Previous, Score, Trace
from evaluators.plan import make_plan
from evaluators.resources import Embedder
from evaluators.run import score_trace
from tests.support.evaluating import OURS, HashEmbedder, a_trace, error_type, plan_of
from tests.support.table import for_each

MODEL = "text-embedding-3-small"
PLAN = make_plan(OURS, {}, embedder=MODEL, hosted=True, only=["coherence", "loop_detection"])
HISTORY = (Previous(trace_id="p", digest="pd", output="It was sunny in Paris."),)


class ScriptedEmbed:
    """Hashed words; an error instead, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.error = error

    async def __call__(self, texts: Sequence[str]) -> Embedded:
        self.asked.append(tuple(texts))
        if self.error is not None:
            raise self.error
        vectors = tuple(tuple(each) for each in HashEmbedder().embed(texts))
        return Embedded(vectors=vectors, input_tokens=7, cost_usd=0.5)


async def run(embed: ScriptedEmbed, trace: Trace | None = None) -> Verdict:
    return await embed_trace(PLAN.judged, trace or a_trace(), embed, model=MODEL, history=HISTORY)


async def test_one_request_gives_the_scores_that_a_local_embedder_would_give() -> None:
    embed = ScriptedEmbed()
    verdict = await run(embed)

    local = make_plan(OURS, {}, embedder=MODEL, only=["coherence", "loop_detection"])
    expected = score_trace(local, a_trace(), history=HISTORY, embedder=HashEmbedder())
    assert [each.score for each in verdict.outcomes] == [each.score for each in expected]
    assert [each.compared for each in verdict.outcomes] == [(), ("pd",)]
    assert [each.options_digest for each in verdict.outcomes] == [
        each.options_digest for each in expected
    ]
    assert len(embed.asked) == verdict.calls == 1
    used = [each.judge for each in verdict.outcomes if each.judge is not None]
    assert sorted(each.input_tokens for each in used) == [3, 4]
    assert sum(each.cost_usd or 0 for each in used) == verdict.cost_usd == 0.5


@for_each(
    "error,state,why",
    [
        (JudgeError(type="budget", message="spent"), "skipped", "budget"),
        (JudgeError(type="timeout", message="late"), "failed", "timeout"),
        (ValueError("broken"), "failed", "exception"),
    ],
)
async def test_without_vectors_each_ends_with_the_reason(
    error: Exception, state: str, why: str
) -> None:
    verdict = await run(ScriptedEmbed(error))
    for each in verdict.outcomes:
        assert (each.state, each.reason or (each.error and each.error.type)) == (state, why)
        assert each.final
    assert verdict.outcomes[1].compared == ("pd",)


async def test_an_evaluator_that_needs_no_vectors_requests_none() -> None:
    embed = ScriptedEmbed(ValueError("must not be asked"))
    verdict = await run(embed, a_trace(output=None))
    assert not embed.asked
    assert [each.assumed for each in verdict.outcomes] == [1.0, 1.0]


async def test_an_evaluator_that_never_stops_asking_fails_after_a_few_requests() -> None:
    @evaluator(version="1")
    def curious(trace: Trace, *, embedder: Embedder) -> Score:
        """Wants one more text each time."""
        for number in range(100):
            embedder.embed([f"{trace.input} {number}"])
        return Score(value=1.0)

    embed = ScriptedEmbed()
    due = plan_of(curious, embedder=MODEL, hosted=True).judged
    (outcome,) = (await embed_trace(due, a_trace(), embed, model=MODEL)).outcomes

    assert error_type(outcome) == "overload"
    assert len(embed.asked) == MAX_ROUNDS
