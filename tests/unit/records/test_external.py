"""What the value and the label of an external evaluator are worth as a score, and the names of its signals."""

from typing import Any

import pytest

from collector.base.errors import Undecodable
from collector.config.load import load
from collector.records.external import UNVERSIONED, EvaluationRules, external_objectives
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.sent_feedback import Evaluation, EvaluationOrigin, GivenScore, Scale, slug
from evaluators.model import Outcome
from tests.support.table import for_each

TRACE = "1" * 32
CONFIG = load(
    [],
    {},
    [
        "evaluations.scales={Groundedness: {min: 1, max: 5}}",
        "evaluations.labels={Sound: pass, shaky: fail}",
        "evaluations.thresholds={groundedness: 0.7}",
        "evaluations.lower_is_better=[toxicity]",
        "evaluations.objectives={Polite: 0.9, tone: 0.8}",
        "judges.polite.rubric=polite or not",
    ],
)
RULES = EvaluationRules.of(CONFIG, frozenset({"coherence"}))


def said(**fields: Any) -> Feedback:
    given: dict[str, Any] = {"name": "tone", "trace_id": TRACE, **fields}
    return FeedbackRules().feedback(Evaluation(**given), now=1_700_000_000.0)


def outcome(**fields: Any) -> Outcome:
    return RULES.outcome(said(**fields))


@for_each(
    ("fields", "score", "success"),
    [
        ({"value": 0.4}, 0.4, None),
        ({"value": True}, 1.0, None),
        ({"value": 0.4, "label": "PASS"}, 0.4, True),
        ({"value": 0.9, "label": "not relevant"}, 0.9, False),
        ({"value": 0.9, "label": "so so"}, 0.9, None),
        ({"label": "Non-Toxic"}, 1.0, True),
        ({"label": "Correct"}, 1.0, True),
        ({"label": "hallucinated"}, 0.0, False),
        ({"label": "sound"}, 1.0, True),
        ({"label": "shaky"}, 0.0, False),
        ({"name": "groundedness", "value": 4}, 0.75, True),
        ({"name": "Groundedness", "value": 3, "label": "pass"}, 0.5, False),
        ({"name": "stars", "value": 4, "scale": Scale(min=0, max=10)}, 0.4, None),
        ({"name": "toxicity", "value": 0.1}, 0.9, None),
    ],
)
def test_a_score(fields: dict[str, Any], score: float, success: bool | None) -> None:
    found = outcome(**fields)

    assert (found.state, found.method, found.error) == ("scored", "external", None)
    assert found.score == pytest.approx(score)
    assert found.success is success


@pytest.mark.parametrize(
    ("fields", "error", "line"),
    [
        ({"value": 4}, "out_of_scale", "{scales: {tone: {min: 0, max: 4}}}"),
        ({"value": -1}, "out_of_scale", "{scales: {tone: {min: -1, max: 1}}}"),
        ({"name": "groundedness", "value": 0.5}, "out_of_scale", "min: 0.5, max: 5"),
        ({"label": "so so"}, "unknown_label", "{labels: {so so: pass}}"),
    ],
)
def test_what_is_no_score_says_which_line_to_set(
    fields: dict[str, Any], error: str, line: str
) -> None:
    found = outcome(**fields)

    assert (found.state, found.score, found.success) == ("failed", None, None)
    assert found.error is not None
    assert found.error.type == error
    assert line in found.error.message


def test_what_the_evaluator_itself_says() -> None:
    def of(**origin: Any) -> Outcome:
        given = GivenScore(
            name="Helpfulness",
            trace_id=TRACE,
            label="somewhat",
            kind="llm",
            origin=EvaluationOrigin(**origin),
        )
        return RULES.outcome(FeedbackRules().feedback(given, now=0.0))

    assert (of(passed=True).score, of(passed=False).success) == (1.0, False)
    assert (of(version="3", passed=True).version, of(passed=True).version) == ("3", UNVERSIONED)
    failed = of(error="timeout").error
    assert failed is not None
    assert failed.type == "timeout"


def test_names_are_slugs_and_never_ours() -> None:
    assert [slug(each) for each in ("AnswerRelevancy", "Answer Relevancy [GEval]", "a/b.c")] == [
        "answer_relevancy",
        "answer_relevancy_geval",
        "a_b_c",
    ]
    long = [slug("x" * 100 + end) for end in "ab"]
    assert [len(each) for each in long] == [64, 64]
    assert long[0] != long[1], "what is cut is told apart"
    assert slug("质量") != slug("速度")
    assert slug("质量").isascii()
    assert RULES.evaluator("Coherence") == "x_coherence"
    assert RULES.evaluator("Coherence 2") == "coherence_2"
    assert RULES.evaluator("Polite") == "x_polite", "a judge of the configuration is ours, too"
    assert external_objectives(CONFIG, frozenset()) == {"x_polite": 0.9, "tone": 0.8}


def test_an_explanation_is_cut() -> None:
    found = outcome(value=1, comment="why " * 1_000)
    assert found.explanation is not None
    assert len(found.explanation) == 1_000


@pytest.mark.parametrize(
    "fields",
    [{"value": float("nan")}, {"value": 1, "version": "9" * 513}, {"value": 1, "name": ""}],
)
def test_what_is_no_number_or_too_long_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Undecodable):
        said(**fields)
