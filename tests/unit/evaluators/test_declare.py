"""An evaluator's signature is its declaration."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from evaluators.declare import Spec, declared, evaluator
from evaluators.errors import SettingsError
from evaluators.expectations import Expectation
from evaluators.model import JSON, Score, Session, Trace, Turn
from evaluators.resources import Block, Embedder, History, Judge, Running, UnitInterval
from tests.support.evaluating import a_trace


class Tone(Block, frozen=True, kw_only=True):
    """Is it polite?"""

    score: UnitInterval


class Count(Running):
    def __init__(self, options: Mapping[str, JSON]) -> None:
        self.turns: set[str] = set()

    def put(self, turn: Turn) -> None:
        self.turns.add(turn.trace_id)

    def drop(self, trace_id: str) -> None:
        self.turns.discard(trace_id)


def spec_of(function: object) -> Spec:
    spec = declared(function)
    assert spec is not None
    return spec


def test_the_decorator_returns_the_function_itself_and_declares_it() -> None:
    def brevity(trace: Trace) -> Score:
        """Short answers."""
        return Score(value=1.0)

    assert evaluator(version="3", threshold=0.9)(brevity) is brevity

    spec = spec_of(brevity)
    assert (spec.name, spec.version, spec.threshold) == ("brevity", "3", 0.9)
    assert (spec.doc, spec.scope, spec.needs) == ("Short answers.", "trace", ())
    assert spec.method == "deterministic"


def test_resources_are_read_by_type() -> None:
    def many(
        trace: Trace, *, before: History, vectors: Embedder, wanted: Expectation, tone: Tone
    ) -> Score:
        return Score(value=tone.score)

    async def asking(trace: Trace, *, judge: Judge) -> Score:
        return Score(value=1.0)

    def counting(session: Session, *, count: Count) -> Score:
        return Score(value=1.0)

    every, asks, counts = (
        spec_of(evaluator(version="1")(each)) for each in (many, asking, counting)
    )
    assert set(every.needs) == {"history", "embedder", "expectations", "judge"}
    assert (every.method, asks.method) == ("llm_judge", "llm_judge")
    assert (counts.method, counts.running) == ("formula", Count)


def test_a_signature_that_cannot_be_run_is_refused() -> None:
    def of_text(text: str) -> Score:
        return Score(value=1.0)

    def of_clock(trace: Trace, *, clock: float) -> Score:
        return Score(value=1.0)

    def positional(trace: Trace, limit: int = 1) -> Score:
        return Score(value=1.0)

    def embedding(session: Session, *, vectors: Embedder) -> Score:
        return Score(value=1.0)

    def sharing(trace: Trace, *, share: UnitInterval = 2.0) -> Score:
        return Score(value=1.0)

    for wrong, why in (
        (of_text, "evaluator `of_text`: `text` must be a Trace or a Session"),
        (of_clock, "evaluator `of_clock`: nothing provides `clock"),
        (positional, "evaluator `positional`: `limit` must be keyword-only"),
        (embedding, "evaluator `embedding`: a session has its turns"),
        (sharing, "evaluator `sharing`: default of `share`"),
    ):
        with pytest.raises(TypeError, match=why):
            evaluator(version="1")(wrong)
    with pytest.raises(TypeError, match="lower_snake_case"):
        evaluator(version="1", name="Not This")(of_text)


def test_without_annotations_the_name_says_what_it_takes() -> None:
    # As a user writes them: this file's own types are checked.
    written = """
def trace_like(trace, *, limit=3, words=None):
    return True
def session_like(session):
    return 0.5
def neither(text):
    return 1.0
"""
    made: dict[str, Any] = {}
    exec(written, made)
    declare = evaluator(version="1")

    of_trace, of_session = (spec_of(declare(made[n])) for n in ("trace_like", "session_like"))

    assert (of_trace.scope, of_session.scope) == ("trace", "session")
    assert (of_trace.option("limit", 4), of_trace.option("words", ["a"])) == (4, ["a"])
    with pytest.raises(SettingsError, match=r"evaluators\.trace_like\.limit"):
        of_trace.option("limit", "many")
    with pytest.raises(TypeError, match="annotate it, or call it so"):
        declare(made["neither"])
    with pytest.raises(TypeError, match="takes no Trace and no Session"):
        evaluator(version="1", name="nothing")(lambda: 1.0)


@pytest.mark.parametrize("given", [(a_trace,), ("1",), ()])
def test_without_parentheses_or_a_version_one_line_says_what_to_write(
    given: tuple[object, ...],
) -> None:
    with pytest.raises(TypeError, match=r'^write .* @spanwise\.evaluator\(version="1"\)$'):
        evaluator(*given)


def test_a_score_takes_its_value_and_the_explanation_by_position() -> None:
    assert Score(0.7, "why") == Score(value=0.7, explanation="why")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("share", 1.5, "evaluators.optional.share: Expected `float` <= 1.0"),
        ("share", float("nan"), "evaluators.optional.share: "),
        ("mode", "other", "evaluators.optional.mode: Invalid enum value 'other'"),
        ("weights", {"a": "x"}, "evaluators.optional.weights: Expected `float`, got `str`"),
        ("shape", 1, r"evaluators.optional.shape: no such option \(it has: mode, share, weights\)"),
    ],
)
def test_an_option_that_does_not_fit_names_its_path(name: str, value: JSON, message: str) -> None:
    @evaluator(version="1")
    def optional(
        trace: Trace,
        *,
        share: UnitInterval = 0.5,
        mode: Literal["fast", "slow"] = "fast",
        weights: Mapping[str, float] = {},
    ) -> Score:
        return Score(value=share)

    with pytest.raises(SettingsError, match=message):
        spec_of(optional).option(name, value)


def test_anything_else_is_not_declared() -> None:
    assert declared(len) is declared("text") is None
