"""What a judge is sent is part of a score: changed words need new versions of the evaluators they change.

When a test here fails: bump `version` of the evaluators named (of all of them for the shared words), then write the
new digests down.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from evaluators.digest import canonical
from evaluators.expectations import Expectation
from evaluators.model import Session
from evaluators.resources import Block, Conversation
from tests.support.evaluating import OURS, a_call, a_trace
from tests.support.judging import answering, judge, judge_turns, judged

TRACE = a_trace(tool_calls=(a_call(),))
CONVERSATION = Conversation(
    session=Session(service="bot", session_id="s", agent="a"), traces=(TRACE,), expected={}
)

SHARED = "dd0ad9227db5d0ff"

PINNED: Mapping[str, tuple[str, str]] = {
    "agentic": ("1", "e65b5aec7c9804a6"),
    "argument_correctness": ("1", "b5da51d6d7bfaa80"),
    "confidence": ("1", "3fc79e70ebfa5e4c"),
    "conversation_quality": ("1", "482ce6bf86474e88"),
    "faithfulness": ("1", "765df3b9cb092c40"),
    "helpfulness": ("1", "13a018f53c084889"),
    "plan_adherence": ("1", "a48246a85e7c79ca"),
    "plan_quality": ("1", "09addd2e8a6a9c50"),
    "relevance": ("1", "0d22fd41a52f9dab"),
    "response_coherence": ("1", "70a6634a592df607"),
    "step_efficiency": ("1", "2414677fbf0d437b"),
    "task_completion": ("1", "0337e4e2f7746895"),
    "tool_correctness": ("1", "8e14a6915ae09602"),
}
"""Version and digest of rubrics and schemas, the extraction's included where it is used."""


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


def _judged() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for spec in OURS:
        subject = TRACE if spec.scope == "trace" else CONVERSATION
        kinds = [kind for kind in spec.resources.values() if isinstance(kind, type)]
        blocks: list[type[Block]] = [kind for kind in kinds if issubclass(kind, Block)]
        if blocks:
            asked = [kind.question(subject, spec.options) for kind in blocks]
            prompts = [[each.rubric, each.schema] for each in asked]
            found[spec.name] = (spec.version, _digest(prompts))
    return found


async def test_the_words_around_rubrics_and_recording() -> None:
    asked = answering()
    expected = Expectation(output="x", outcomes=("y",), emphasis="z")

    await judge(TRACE, asked, judged("task_completion", "relevance"), expectation=expected)
    await judge_turns([TRACE], asked, judged("agentic"), expectations={TRACE.trace_id: expected})

    said = [[prompt.name, prompt.system, prompt.user] for prompt, _ in asked.asked]
    assert _digest(said) == SHARED


def test_a_changed_rubric_has_a_new_version() -> None:
    assert _judged() == PINNED
