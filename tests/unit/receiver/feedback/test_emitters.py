"""What real evaluators export, recorded once: each is a score. `tests/e2e/test_external_evaluators.py` runs them.

The recordings are of strands-agents-evals 1.7.0 (`Experiment.run_evaluations`) and azure-ai-evaluation 1.18.10 (its
`_log_events_to_app_insights`, with a provider of the SDK in place of Azure's).
"""

from pathlib import Path

from collector.base.errors import Undecodable
from collector.receiver.feedback.found import said_in
from collector.records.external import EvaluationRules
from collector.records.feedback import Feedback, FeedbackRules
from evaluators.model import Outcome
from tests.support.recordings import requests

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests/data/evaluators"
TRACE = "0af7651916cd43dd8448eb211c80319c"
RULES = EvaluationRules(taken=frozenset({"contains"}), scales={"groundedness": (1, 5)})


def scored(said: Feedback) -> Outcome:
    return RULES.outcome(said)


def read(request: bytes, items: str) -> list[Feedback]:
    found: list[Feedback] = []
    for each in said_in(request, items):
        assert not isinstance(each, Undecodable)
        found.append(FeedbackRules().feedback(each, now=0.0))
    return found


def test_strands_evals() -> None:
    (request,) = requests(DATA / "strands-agents-evals.otlp")
    (said,) = read(request, "spans")
    assert said.evaluation is not None
    assert (said.evaluation.source, said.evaluation.sender) == ("strands-evals", "shop")
    found = scored(said)
    assert (found.evaluator, found.score, found.success) == ("x_contains", 1.0, True)
    assert found.explanation == "actual_output contains 'rain'"
    assert said.trace_id is not None
    assert bytes.fromhex(said.trace_id) in request, "of the trace of its case"


def test_azure_ai_evaluation() -> None:
    (request,) = requests(DATA / "azure-ai-evaluation.logs.otlp")
    (said,) = read(request, "log_records")
    found = scored(said)
    assert (said.trace_id, found.evaluator, found.score) == (TRACE, "groundedness", 0.75)
    assert (found.success, found.metadata["source"]) == (True, "azure.ai.evaluation")
