"""What real evaluators export, recorded once, and every block of docs/external-evaluators.md: each is a score.

The recordings are of strands-agents-evals 1.7.0 (`Experiment.run_evaluations`) and azure-ai-evaluation 1.18.10 (its
`_log_events_to_app_insights`, with a provider of the SDK in place of Azure's). What the blocks find has the fields that
these gave when the blocks were run with them: Ragas 0.4.3 (with langchain-community below 0.4), DeepEval 4.3.1 and
azure-ai-evaluation 1.18.10. An evaluator of arize-phoenix-evals 3.9.4 was run, not its block; promptfoo was not run.
"""

import json
import re
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link

from collector.base.errors import Undecodable
from collector.receiver.feedback.found import said_in
from collector.records.external import EvaluationRules
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.given import given
from evaluators.model import Outcome
from tests.support.recordings import requests

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests/data/evaluators"
PAGE = ROOT / "docs/external-evaluators.md"
BLOCKS = re.findall(r"\*\*([^*\n]+)\*\*[^\n]*:\n\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
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


class Sent:
    """Stands in for `send` of the page."""

    def __init__(self) -> None:
        self.scores: list[dict[str, Any]] = []

    def __call__(self, scores: list[dict[str, Any]]) -> None:
        self.scores += scores


def of_a_tool(tool: str, folder: Path) -> dict[str, Any]:
    """What the blocks find when they run: the results of each tool, in the form that it gives them."""
    metric = SimpleNamespace(name="Answer Relevancy", score=0.5, reason="so so", success=True)
    row = {"vars": {"trace_id": TRACE}, "gradingResult": {"score": 1, "pass": True, "reason": "ok"}}
    (folder / "results.json").write_text(json.dumps({"results": {"results": [row]}}))
    azure = {"inputs.trace_id": TRACE, "outputs.groundedness.groundedness": 4.0}
    azure |= {"outputs.groundedness.groundedness_reason": "all of it is in the context"}
    exact = SimpleNamespace(name="exact", score=1.0, label=None, explanation=None)
    result = SimpleNamespace(
        scores=[{"faithfulness": 0.8, "precision": float("nan")}],
        test_results=[SimpleNamespace(metrics_data=[metric])],
    )
    return {
        "json": json,
        "trace_ids": [TRACE],
        "result": result,
        "results": [[exact]] if tool == "Phoenix Evals" else {"rows": [azure]},
        "Link": Link,
    }


@pytest.mark.parametrize(("tool", "block"), BLOCKS, ids=[tool for tool, _ in BLOCKS])
def test_a_block_of_the_page(
    tool: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer, send = provider.get_tracer("page"), Sent()
    with tracer.start_as_current_span("scored") as span:
        scored_span = span.get_span_context()
        names = {"send": send, "span": span, "tracer": tracer, "scored": scored_span}
        exec(block, of_a_tool(tool, tmp_path) | names)
    posted = [given(json.dumps(each).encode(), scores=True) for each in send.scores]
    said = [FeedbackRules().feedback(each, now=0.0) for each in posted]
    exported = encode_spans(memory.get_finished_spans()).SerializeToString()
    (found,) = chain(said, read(exported, "spans"))

    assert scored(found).state == "scored", tool
    assert found.trace_id == (TRACE if posted else format(scored_span.trace_id, "032x"))


def test_every_tool_of_the_page_has_its_block() -> None:
    assert [tool for tool, _ in BLOCKS] == [
        *("Ragas", "DeepEval", "promptfoo", "Azure AI Evaluation", "Phoenix Evals"),
        *("OpenTelemetry", "OpenInference"),
    ]
