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


def test_the_decorator_returns_the_function_itself() -> None:
    def polite(trace: Trace) -> Score:
        """Whether the output says please."""
        return Score(value=float("please" in (trace.output or "")))

    decorated = evaluator(version="1")(polite)

    assert decorated is polite
    assert polite(a_trace(output="please wait")).value == 1.0


def test_name_doc_and_threshold_come_from_the_function_and_the_decorator() -> None:
    @evaluator(version="3", threshold=0.9)
    def brevity(trace: Trace) -> Score:
        """Short answers."""
        return Score(value=1.0)

    spec = spec_of(brevity)

    assert (spec.name, spec.version, spec.threshold, spec.doc) == (
        "brevity",
        "3",
        0.9,
        "Short answers.",
    )
    assert (spec.scope, spec.method, spec.needs) == ("trace", "deterministic", ())


def test_resources_are_read_by_type() -> None:
    @evaluator(version="1")
    def many(
        trace: Trace, *, before: History, vectors: Embedder, wanted: Expectation, tone: Tone
    ) -> Score:
        """Everything at once."""
        return Score(value=tone.score)

    @evaluator(version="1")
    async def asking(trace: Trace, *, judge: Judge) -> Score:
        """Calls of its own."""
        return Score(value=1.0)

    @evaluator(version="1")
    def counting(session: Session, *, count: Count) -> Score:
        """Turns."""
        return Score(value=1.0)

    assert set(spec_of(many).needs) == {"history", "embedder", "expectations", "judge"}
    assert (spec_of(many).method, spec_of(asking).method) == ("llm_judge", "llm_judge")
    assert (spec_of(counting).method, spec_of(counting).running) == ("formula", Count)


def test_a_first_parameter_that_is_neither_trace_nor_session_is_refused() -> None:
    with pytest.raises(TypeError, match="evaluator `wrong`: `text` must be a Trace or a Session"):

        @evaluator(version="1")
        def wrong(text: str) -> Score:
            return Score(value=1.0)


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


def test_a_resource_that_nothing_provides_is_refused() -> None:
    with pytest.raises(TypeError, match="evaluator `wrong`: nothing provides `clock"):

        @evaluator(version="1")
        def wrong(trace: Trace, *, clock: float) -> Score:
            return Score(value=1.0)


def test_a_positional_option_is_refused() -> None:
    with pytest.raises(TypeError, match="evaluator `wrong`: `limit` must be keyword-only"):

        @evaluator(version="1")
        def wrong(trace: Trace, limit: int = 1) -> Score:
            return Score(value=1.0)


def test_a_session_evaluator_cannot_ask_for_a_trace_s_resources() -> None:
    with pytest.raises(TypeError, match="evaluator `wrong`: a session has its turns"):

        @evaluator(version="1")
        def wrong(session: Session, *, vectors: Embedder) -> Score:
            return Score(value=1.0)


def test_a_default_that_breaks_its_own_annotation_is_refused() -> None:
    with pytest.raises(TypeError, match="evaluator `wrong`: default of `share`"):

        @evaluator(version="1")
        def wrong(trace: Trace, *, share: UnitInterval = 2.0) -> Score:
            return Score(value=1.0)


def test_a_name_that_is_not_lower_snake_case_is_refused() -> None:
    with pytest.raises(TypeError, match="lower_snake_case"):

        @evaluator(version="1", name="Not This")
        def wrong(trace: Trace) -> Score:
            return Score(value=1.0)


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
    assert declared(len) is None
    assert declared("text") is None
