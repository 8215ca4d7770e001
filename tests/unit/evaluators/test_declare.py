"""What users write: a signature that is its declaration, a registry that finds it, and a run of its own."""

import subprocess
import sys
import types
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import pytest

from evaluators.declare import Spec, declared, evaluator
from evaluators.errors import DuplicateEvaluatorError, PluginError, SettingsError
from evaluators.expectations import Expectation
from evaluators.model import JSON, Score, Session, Trace, Turn
from evaluators.plan import Plan, make_plan
from evaluators.registry import GROUP, Registry
from evaluators.resources import Block, Embedder, History, Judge, Running, UnitInterval
from evaluators.run import MESSAGE_LIMIT, score_trace
from evaluators.trace.confidence import confidence
from tests.support.bad_plugins import FAILS, bad
from tests.support.evaluating import OURS, a_call, a_trace, a_turn, session_outcomes


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
        return Score(1.0, "by position")

    assert declared(brevity) is None
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


# --- what is registered, and what registering costs -------------------------------------------------------------------


HEAVY = ("numpy", "wordllama", "litellm", "jsonschema", "tokenizers")


@pytest.mark.process
def test_discovering_and_planning_imports_no_heavy_library() -> None:
    program = (
        "import sys; from evaluators.registry import Registry;"
        "from evaluators.plan import make_plan; from evaluators.run import SessionScorer;"
        "import evaluators.providers.wordllama;"
        "plan = make_plan(Registry.discover(), {}, embedder='wordllama/x', expectations=True);"
        "SessionScorer(plan);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"


def test_what_a_third_party_merely_imports_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("this_test_evaluators")
    vars(module)["imported"] = confidence
    monkeypatch.setitem(sys.modules, module.__name__, module)

    registry = Registry.discover([EntryPoint("this_test", module.__name__, GROUP)])

    assert list(registry) == list(OURS)


def test_a_third_party_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(PluginError, match="entry point `this_test`"):
        Registry.discover([EntryPoint("this_test", "no_such_module_of_this_test", GROUP)])


def test_a_name_declared_twice_is_refused() -> None:
    spec = OURS.named("coherence")[0]

    with pytest.raises(DuplicateEvaluatorError, match="`coherence`"):
        Registry([spec, spec])


# --- the file that pyright checks, discovered as a third party's, runs ------------------------------------------------


POINT = EntryPoint("this_test", "tests.typing.user_evaluators", GROUP)


def test_a_third_party_s_evaluators_are_found_planned_and_run() -> None:
    only = ["this_test/tool_success", "this_test/patience"]
    plan = make_plan(Registry.discover([POINT]), {}, embedder=None, only=only)
    trace = a_trace(tool_calls=(a_call(span_id="1", error="no"), a_call(span_id="2")))
    patient, succeeds = plan.plugins
    turn = a_turn("t1", 1, {}, duration=31.0)

    (outcome,) = score_trace(Plan(trace=(succeeds,)), trace)
    (patience,) = session_outcomes(Plan(session=(patient,)), turn, closed=False).values()

    assert (outcome.evaluator, outcome.method) == ("this_test/tool_success", "custom")
    assert (outcome.score, outcome.success, outcome.evidence) == (0.5, False, ("1",))
    assert (patience.evaluator, patience.score) == ("this_test/patience", 0.0)


def test_a_running_state_that_breaks_fails_its_own_evaluator_only() -> None:
    registry = Registry.discover([POINT])
    plan = make_plan(registry, {}, embedder=None, only=["this_test/patience", "agent_reliability"])
    both = Plan(session=(*plan.plugins, *plan.session))
    turn = a_turn("t1", 1, {"confidence": 0.5}, duration="not a number")

    outcomes = session_outcomes(both, turn, closed=False)

    assert {name: each.state for name, each in outcomes.items()} == {
        "this_test/patience": "failed",
        "agent_reliability": "scored",
    }


@pytest.mark.parametrize("scope", ["trace", "session"])
@pytest.mark.filterwarnings("ignore:coroutine 'sleep' was never awaited")
def test_whatever_one_raises_or_returns_is_its_own_outcome_also_in_the_program_s_process(
    tmp_path: Path, scope: str
) -> None:
    # A program's Ctrl-C is its own. What takes hundreds of MB takes seconds, too.
    large = {"takes_memory", "raises_long", "returns_much", "returns_much_metadata"}
    kinds = sorted(FAILS.keys() - {"interrupts", *large})
    registry = Registry.discover(plugins=[str(bad(tmp_path, *kinds, scope=scope))])
    plan = make_plan(registry, {}, embedder=None)
    due = tuple(each for each in plan.plugins if each.spec.name.startswith("bad/"))

    if scope == "trace":
        outcomes = score_trace(Plan(trace=due), a_trace())
    else:
        outcomes = session_outcomes(Plan(session=due), a_turn("t1", 1, {})).values()

    failed = {each.evaluator for each in outcomes if each.state == "failed"}
    assert len(outcomes) == len(kinds)
    assert failed == {f"bad/{kind}" for kind in kinds}
    told = [each.error.message for each in outcomes if each.error is not None]
    assert max(map(len, told)) <= MESSAGE_LIMIT
    assert all(each.encode() for each in told)
