"""What is said of a trace where it is read: all that needs no other trace of its session."""

from collections.abc import Mapping

import msgspec
import pytest

from collector.config.plan import failed_outcomes
from collector.config.tree import Config
from collector.reading.port import PluginJob, reader_settings
from collector.reading.trace_scoring import TraceScoring
from collector.reading.worker import JobRunner
from collector.records.codec import encode
from collector.records.trace_outcomes import (
    OUTCOMES,
    TraceOutcomes,
    fitted,
    outcomes_of,
    packed_outcomes,
)
from evaluators.declare import declared, evaluator
from evaluators.expectations import Expectations
from evaluators.model import JSON, Outcome, Score, Trace
from evaluators.plan import Plan, make_plan
from evaluators.registry import Registry
from evaluators.resources import History
from tests.support.evaluating import OURS, HashEmbedder, a_trace


@evaluator(version="1")
def echoes(trace: Trace, *, history: History) -> Score:
    """Counts the turns before."""
    return Score(value=len(history.previous) / 3)


def scoring(*entries: JSON, plan: Plan | None = None) -> TraceScoring:
    made = plan or make_plan(OURS, {}, embedder="hash", expectations=bool(entries))
    return TraceScoring(made, HashEmbedder(), Expectations(entries))


def of(outcomes: tuple[Outcome, ...], name: str) -> Outcome:
    return next(each for each in outcomes if each.evaluator == name)


def test_everything_but_what_compares_turns_has_its_outcome() -> None:
    plan = make_plan(OURS, {}, embedder="hash")
    found = scoring(plan=plan).outcomes(a_trace())

    names = [each.evaluator for each in found.outcomes]
    assert sorted([*names, *found.sketches]) == sorted(each.spec.name for each in plan.trace)
    assert [*found.sketches] == ["loop_detection"]
    assert found.by_turn == {}


def entry(output: str, **match: JSON) -> Mapping[str, JSON]:
    return {"match": match, "output": output}


def test_an_expectation_of_a_place_is_tried_for_each_place_that_fits() -> None:
    trace = a_trace(output="yes", input="Shipped?")
    made = scoring(
        entry("yes", turn=1, session_id="s-1"),
        entry("no", turn=3, input="Shipped?"),
        entry("no", turn=4, session_id="another"),
        entry("yes", input="Shipped?"),
    )

    found = made.outcomes(trace)

    assert of(found.outcomes, "exact_match").score == 1.0
    assert [*found.by_turn] == [1, 3]
    assert of(found.by_turn[1], "exact_match").score == 1.0
    assert of(found.by_turn[3], "exact_match").score == 0.0
    assert "confidence" not in {each.evaluator for each in found.by_turn[3]}


def test_a_piece_of_another_turn_is_not_scored_and_one_that_cannot_be_read_fails() -> None:
    plan = make_plan(OURS, {}, embedder="hash")

    assert scoring(plan=plan).outcomes(a_trace(is_part=True)) == TraceOutcomes()
    unread = scoring(plan=plan).outcomes(a_trace(unread="too_deep"))
    message = "the trace could not be read: too_deep"
    assert unread.outcomes == failed_outcomes(plan, "too_deep", message)


def test_who_compares_texts_is_asked_with_the_texts() -> None:
    spec = declared(echoes)
    assert spec is not None
    plan = make_plan(Registry([*OURS, spec]), {}, embedder="hash")

    made = scoring(plan=plan)

    assert "echoes" not in {each.evaluator for each in made.outcomes(a_trace()).outcomes}
    assert made.plugin(plan.plugins[0], a_trace(), (), None).score == 0.0


def test_a_trace_that_cannot_be_unpacked_fails_who_compares_and_ends_no_worker() -> None:
    spec = declared(echoes)
    assert spec is not None
    plan = make_plan(Registry([*OURS, spec]), {}, embedder=None)
    runner = JobRunner(reader_settings(Config.model_validate({"embedder": {"kind": "none"}})), plan)

    outcome = runner.plugin(PluginJob(evaluator="echoes", trace=msgspec.Raw(b"\x80")))

    assert outcome.error is not None
    assert (outcome.evaluator, outcome.error.type) == ("echoes", "undecodable")


MANY = TraceOutcomes(
    (
        Outcome(
            evaluator="a",
            version="1",
            method="deterministic",
            state="scored",
            score=0.5,
            explanation="x" * 1000,
            metadata={"x": "y" * 1000},
        ),
    ),
    {"loop_detection": b"z" * 1000},
)


def test_outcomes_without_room_lose_their_texts_and_keep_their_scores() -> None:
    whole = packed_outcomes(MANY, 1 << 20)
    brief = packed_outcomes(MANY, 1000)

    assert msgspec.msgpack.decode(whole, type=TraceOutcomes) == MANY
    assert fitted(whole, len(whole)) == whole
    assert fitted(whole, 1000) == brief
    found = msgspec.msgpack.decode(brief, type=TraceOutcomes)
    assert [(each.score, each.explanation, each.metadata) for each in found.outcomes] == [
        (0.5, None, {})
    ]
    assert found.sketches == {}
    assert packed_outcomes(MANY, 10) == b""


@pytest.mark.parametrize("headers", [(), ((OUTCOMES, b"\xc1"),), (("other", encode(MANY)),)])
def test_headers_without_outcomes_have_none(headers: tuple[tuple[str, bytes], ...]) -> None:
    assert outcomes_of(headers) is None
