"""What is registered, and what registering costs."""

import subprocess
import sys
import types
from importlib.metadata import EntryPoint

import pytest

from evaluators.errors import DuplicateEvaluatorError, PluginError
from evaluators.registry import GROUP, Registry
from evaluators.trace.confidence import confidence
from tests.support.evaluating import OURS

HEAVY = ("numpy", "wordllama", "litellm", "jsonschema", "tokenizers")


def test_every_evaluator_of_the_contract_that_needs_no_model_is_there() -> None:
    named = {
        "deterministic": """tool_correctness argument_correctness step_efficiency confidence exact_match
        tool_expectations""",
        "embedding": "coherence loop_detection",
        "formula": "agent_reliability agent_consistency latency cost token_usage",
    }

    for method, them in named.items():
        assert {spec.name for spec in OURS if spec.method == method} >= set(them.split())
    assert [spec.method for spec in OURS.named("confidence")] == ["deterministic", "llm_judge"]
    assert all(spec.doc for spec in OURS)


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
