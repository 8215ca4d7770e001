"""Configuration becomes a plan, or one clear error."""

import pytest

from evaluators.declare import declared, evaluator
from evaluators.errors import SettingsError
from evaluators.model import JSON, Score, Trace
from evaluators.plan import Configured, Plan, Settings, make_plan
from evaluators.providers.wordllama import MODEL
from evaluators.registry import Registry
from evaluators.resources import History
from tests.support.evaluating import OURS
from tests.support.table import for_each


def names(configured: tuple[Configured, ...]) -> list[str]:
    return [each.spec.name for each in configured]


def one(plan: Plan, name: str) -> Configured:
    return next(each for each in (*plan.trace, *plan.session) if each.spec.name == name)


def test_without_settings_all_whose_needs_are_met_run() -> None:
    plan = make_plan(OURS, {}, embedder=MODEL)

    elsewhere = {"judge", "expectations", "earlier_sessions"}
    met = {spec.name for spec in OURS if spec.on and elsewhere.isdisjoint(spec.needs)}
    assert {*names(plan.trace), *names(plan.session)} == met
    assert met >= {"tool_correctness", "loop_detection", "runaway", "agent_reliability", "cost"}
    assert not met & {"task_completion", "exact_match"}
    assert plan.judged == ()
    assert all(each.emit and each.final for each in (*plan.trace, *plan.session))


def test_without_an_embedder_evaluators_that_embed_are_off_and_expectations_turn_theirs_on() -> (
    None
):
    plan = make_plan(OURS, {}, embedder=None, expectations=True)

    assert not {"coherence", "loop_detection"} & set(names(plan.trace))
    theirs = {"exact_match", "contains", "regex", "json_schema", "tool_expectations"}
    assert theirs <= set(names(plan.trace))


def test_who_compares_texts_and_keeps_no_sketch_waits_for_a_verdict() -> None:
    @evaluator(version="1", name="echoes")
    def echoes(trace: Trace, *, history: History) -> Score:
        return Score(value=float(len(history.previous)))

    plan = make_plan(Registry(filter(None, [*OURS, declared(echoes)])), {}, embedder=MODEL)

    assert names(plan.plugins) == ["echoes"]
    assert "echoes" not in names(plan.trace)
    assert "loop_detection" in names(plan.trace), "it has a sketch"


def test_only_computes_what_the_named_ones_read_without_emitting_it() -> None:
    plan = make_plan(OURS, {}, embedder=MODEL, only=["agent_reliability"])

    assert names(plan.trace) == ["confidence", "loop_detection", "tool_correctness"]
    assert [each.spec.name for each in plan if each.emit] == ["agent_reliability"]


def test_a_judge_makes_the_siblings_stand_ins() -> None:
    plan = make_plan(OURS, {}, embedder=MODEL, judge=True)

    assert one(plan, "confidence").final is False
    assert one(plan, "coherence").final is True
    assert {"task_completion", "plan_quality", "confidence"} <= set(names(plan.judged))
    assert all(each.final for each in plan.judged)


@for_each("model,more", [(MODEL, ()), ("text-embedding-3-small", ("coherence",)), (None, ())])
def test_coherence_is_a_signal_only_where_its_scale_is_calibrated(
    model: str | None, more: tuple[str, ...]
) -> None:
    found = one(make_plan(OURS, {}, embedder=model), "agent_reliability").options["signals"]

    assert found == ("confidence", "loop_detection", "tool_correctness", *more)


def test_the_options_digest_changes_with_everything_a_user_can_set() -> None:
    def digest(model: str | None = MODEL, threshold: float | None = None, **options: JSON) -> str:
        settings = {"agent_reliability": Settings(threshold=threshold, options=options)}
        return one(make_plan(OURS, settings, embedder=model), "agent_reliability").options_digest

    changed = digest(threshold=0.7), digest(signal_weights={"confidence": 2}), digest("x")

    assert len({digest(), digest(), *changed}) == 4


WEIGHTS: dict[str, JSON] = {"signal_weights": {"confidence": -1}}


@for_each(
    "name,settings,message",
    [
        ("nope", Settings(), "nope: no evaluator of that name"),
        (
            "agent_reliability",
            Settings(options=WEIGHTS),
            "agent_reliability.signal_weights: Expected `float` >= 0.0",
        ),
        (
            "agent_reliability",
            Settings(options={"signals": ["mood"]}),
            "agent_reliability.signals: Invalid enum value 'mood'",
        ),
        ("confidence", Settings(options={"depth": 3}), "confidence.depth: no such option"),
        ("confidence", Settings(threshold=1.5), "confidence.threshold: expected a number"),
        ("latency", Settings(model="gpt"), "latency.model: `latency` asks no model"),
        ("coherence", Settings(enabled=True), "coherence: needs embedder"),
        ("exact_match", Settings(enabled=True), "exact_match: needs expectations"),
        ("task_completion", Settings(enabled=True), "task_completion: needs judge"),
    ],
)
def test_a_wrong_setting_is_an_error_that_begins_with_its_path(
    name: str, settings: Settings, message: str
) -> None:
    with pytest.raises(SettingsError, match=rf"^evaluators\.{message}"):
        make_plan(OURS, {name: settings}, embedder=None)
    with pytest.raises(SettingsError, match=r"^evaluators\.nope: "):
        make_plan(OURS, {}, embedder=None, only=["nope"])


def test_what_is_switched_off_does_not_run_even_as_a_signal() -> None:
    settings = {"confidence": Settings(enabled=False)}

    plan = make_plan(OURS, settings, embedder=None, only=["agent_reliability"])

    assert names(plan.trace) == ["tool_correctness"]
