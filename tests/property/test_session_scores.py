"""Session scores are a function of the set of turns: any order, any detour, to the bit."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.coverage import is_low
from evaluators.formulas.session_risk import TailRisk
from evaluators.model import Outcome, Session, Turn
from evaluators.plan import Plan, Settings, make_plan
from evaluators.run import SessionScorer
from evaluators.uses import CallCount
from tests.support.evaluating import OURS, a_turn
from tests.support.examples import examples

SIGNALS: tuple[str, ...] = ("confidence", "loop_detection", "tool_correctness", "coherence")
bounded = settings(deadline=None, max_examples=examples(60))
NAMES = ("agent_reliability", "agent_consistency", "repeated_calls")


def a_plan(**weights: float) -> Plan:
    settings_by_name = {
        name: Settings(options={"signals": SIGNALS, "signal_weights": weights})
        for name in ("agent_reliability", "agent_consistency")
    }
    return make_plan(OURS, settings_by_name, embedder=None, only=NAMES)


PLAN = a_plan()

units = st.floats(0, 1, allow_nan=False) | st.sampled_from([0.0, 1.0, 0.5, 0.1])
signals: st.SearchStrategy[dict[str, float]] = st.dictionaries(
    st.sampled_from(SIGNALS), units, max_size=4
)


@st.composite
def turns(draw: st.DrawFn, *, most: int = 40) -> list[Turn]:
    scores = draw(st.lists(signals, max_size=most))
    return [
        a_turn(
            f"t{n}",
            n,
            each,
            unscored=tuple(name for name in SIGNALS if name not in each and draw(st.booleans())),
            tool_calls=3,
            call_counts=(CallCount(n % 2, n % 5, 1 + n % 3), CallCount(7, 7, 1)),
        )
        for n, each in enumerate(scores)
    ]


def score(
    scorer: SessionScorer, window: Sequence[Turn], *, closed: bool = False
) -> tuple[Outcome, ...]:
    session = Session(
        service="s", session_id="s-1", agent="a", turns=window, closed="idle" if closed else None
    )
    return scorer.outcomes(session, closed=closed)


def from_scratch(window: Sequence[Turn], plan: Plan = PLAN) -> SessionScorer:
    scorer = SessionScorer(plan)
    for turn in window:
        scorer.put(turn)
    return scorer


@bounded
@given(st.data(), turns(), st.booleans())
def test_order_does_not_matter_to_the_bit(
    data: st.DataObject, window: list[Turn], closed: bool
) -> None:
    shuffled = data.draw(st.permutations(window))

    ours, theirs = from_scratch(shuffled), from_scratch(window)

    assert score(ours, window, closed=closed) == score(theirs, window, closed=closed)
    assert _bits(ours) == _bits(theirs)


@bounded
@given(st.data(), turns())
def test_incremental_equals_from_scratch_to_the_bit(
    data: st.DataObject, window: list[Turn]
) -> None:
    scorer = SessionScorer(PLAN)
    kept: dict[str, Turn] = {}
    for turn in window:
        scorer.put(turn)
        kept[turn.trace_id] = turn
        action = data.draw(st.sampled_from(["go on", "drop", "replace", "drop unknown"]))
        some = data.draw(st.sampled_from(sorted(kept))) if kept else "none"
        if action == "drop" and kept:
            del kept[some]
            scorer.drop(some)
        elif action == "replace" and kept:
            kept[some] = a_turn(some, 0, data.draw(signals), tool_calls=1)
            scorer.put(kept[some])
        else:
            scorer.drop("never put")

        rest = list(kept.values())
        assert score(scorer, rest, closed=True) == score(from_scratch(rest), rest, closed=True)
        assert _bits(scorer) == _bits(from_scratch(rest))


def _bits(scorer: SessionScorer) -> list[object]:
    """The unrounded state of both formulas."""
    bits: list[object] = []
    for name in ("agent_reliability", "agent_consistency"):
        state = scorer._states[name]
        bits.append(state.raw_risk if isinstance(state, TailRisk) else getattr(state, "rms"))  # noqa: B009
        bits.append(state.coverage)
    return bits


@bounded
@given(turns())
def test_the_running_tail_is_the_document_s_formula(window: list[Turn]) -> None:
    weights = {"confidence": 1.0, "loop_detection": 1.0, "tool_correctness": 0.8, "coherence": 1.0}
    risks = sorted(
        (
            max(weights[name] * (1 - value) for name, value in turn.scores.items())
            for turn in window
            if turn.scores
        ),
        reverse=True,
    )
    by_name = {each.evaluator: each for each in score(from_scratch(window), window)}

    outcome = by_name["agent_reliability"]

    if is_low(outcome.coverage or (0, 0)):
        assert (outcome.state, outcome.reason) == ("skipped", "low_coverage")
        return
    if not risks:
        assert (outcome.state, outcome.assumed) == ("not_applicable", 1.0)
        return
    k = max(1, math.ceil(len(risks) * 0.15))
    raw = 0.9 * math.fsum(risks[:k]) / k + 0.1 * risks[0]
    assert outcome.score == pytest.approx(min(1, max(0, 1 - raw)), abs=0.000_051)


@bounded
@given(turns(), st.fixed_dictionaries({name: st.floats(0, 3) for name in SIGNALS}))
def test_scores_stay_within_bounds_whatever_the_weights(
    window: list[Turn], weights: dict[str, float]
) -> None:
    scorer = from_scratch(window, a_plan(**weights))

    for outcome in score(scorer, window):
        expected, present = outcome.coverage or (0, 0)
        # Half of the scores may be there and still none of those that the formula starts from.
        assert outcome.state in {"scored", "not_applicable"} or present < expected
        assert outcome.score is None or 0 <= outcome.score <= 1


@bounded
@given(st.data(), turns())
def test_more_risk_never_makes_a_session_look_better(
    data: st.DataObject, window: list[Turn]
) -> None:
    places = [(n, name) for n, turn in enumerate(window) for name in turn.scores]
    if not places:
        return
    n, name = data.draw(st.sampled_from(places))
    lower = data.draw(st.floats(0, window[n].scores[name]))
    worse = window[:]
    worse[n] = a_turn(f"t{n}", n, {**window[n].scores, name: lower}, tool_calls=3)

    before = score(from_scratch(window), window)
    after = score(from_scratch(worse), worse)

    for one, two in zip(before, after, strict=True):
        if one.evaluator != "repeated_calls" and one.score is not None:
            assert two.score is not None
            assert two.score <= one.score


@bounded
@given(turns())
def test_coverage_counts_what_was_expected_and_what_came(window: list[Turn]) -> None:
    present = sum(len(turn.scores) for turn in window)
    expected = present + sum(len(turn.unscored) for turn in window)

    for outcome in score(from_scratch(window), window):
        if outcome.evaluator != "repeated_calls":
            assert outcome.coverage == (expected, present)


def test_an_open_session_leaves_out_what_grows_with_it_and_is_not_final() -> None:
    window = [a_turn(f"t{n}", n, {"confidence": 0.2}) for n in range(3)]
    scorer = from_scratch(window)

    is_open = {each.evaluator: each for each in score(scorer, window)}
    closed = {each.evaluator: each for each in score(scorer, window, closed=True)}

    assert not is_open["agent_reliability"].final
    assert closed["agent_reliability"].final
    assert set(closed["agent_reliability"].metadata) - set(
        is_open["agent_reliability"].metadata
    ) == {
        "per_trace_signals",
        "flagged_traces",
    }
    assert closed["agent_reliability"].metadata["flagged_traces"] == ["t0", "t1", "t2"]
    assert "per_trace_signals" not in is_open["agent_consistency"].metadata


def test_measurements_come_once_when_the_session_closes() -> None:
    plan = make_plan(OURS, {}, embedder=None)
    window = [a_turn(f"t{n}", n, {}, duration=0.25 * n, cost_usd=0.5) for n in range(3)]
    scorer = from_scratch(window, plan)

    is_open = {each.evaluator for each in score(scorer, window)}
    closed = {each.evaluator: each for each in score(scorer, window, closed=True)}

    assert is_open == {"agent_reliability", "agent_consistency", "repeated_calls"}
    assert closed["latency"].state == "measured"
    assert closed["latency"].metadata["p50"] == 250.0
    assert closed["cost"].metadata["total"] == 1.5
    assert closed["token_usage"].state == "not_applicable"


def test_signals_used_are_those_the_option_names() -> None:
    scorer = SessionScorer(make_plan(OURS, {}, embedder="wordllama/x"))

    assert scorer.signals_used("agent_reliability") == (
        "confidence",
        "loop_detection",
        "tool_correctness",
    )
    assert scorer.signals_used("latency") == ()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_no_signal(value: float) -> None:
    window = [a_turn("t0", 0, {"confidence": value}), a_turn("t1", 1, {"confidence": 0.4})]

    outcomes = {each.evaluator: each for each in score(from_scratch(window), window)}

    assert outcomes["agent_reliability"].score == 0.4
    assert outcomes["agent_consistency"].coverage == (1, 1)
