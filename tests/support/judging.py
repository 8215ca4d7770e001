"""Plans with a judge and judges that follow a script, for tests of judged evaluators."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluators.judging.judge import Calls, Verdict, judge_session, judge_trace
from evaluators.judging.prompt import Prompt
from evaluators.model import JSON, Outcome, Session, Trace
from evaluators.plan import Configured, Settings, make_plan
from evaluators.providers.scripted import ScriptedJudge, fitting
from tests.support.evaluating import OURS, a_turn

PANDAPROBE = (
    "argument_correctness",
    "confidence",
    "plan_adherence",
    "plan_quality",
    "step_efficiency",
    "task_completion",
    "tool_correctness",
)
COGITATOR = ("faithfulness", "helpfulness", "relevance", "response_coherence")
SESSION = ("agentic", "conversation_quality")
ALL = (*PANDAPROBE, *COGITATOR, *SESSION)
MARKER = "5eed5eed5eed5eed5eed5eed"


def judged(*names: str, **settings: Settings) -> tuple[Configured, ...]:
    """The judged evaluators of these names; none = PandaProbe's."""
    chosen = names or PANDAPROBE
    plan = make_plan(
        OURS, settings, embedder=None, judge="gpt-x", expectations=True, only=list(chosen)
    )
    return plan.judged


async def judge(
    trace: Trace,
    script: ScriptedJudge,
    due: Sequence[Configured] | None = None,
    *,
    calls: Calls = "shared",
    **more: Any,
) -> Verdict:
    """Judge a trace with a known marker."""
    more.setdefault("max_prompt", 24_000)
    return await judge_trace(
        judged() if due is None else due, trace, script, calls=calls, marker=lambda: MARKER, **more
    )


async def judge_turns(
    traces: Sequence[Trace], script: ScriptedJudge, due: Sequence[Configured], **more: Any
) -> Verdict:
    """Judge a session of these traces."""
    turns = tuple(a_turn(trace.trace_id, at, {}) for at, trace in enumerate(traces))
    session = Session(service="bot", session_id="s-1", agent="planner", turns=turns, closed="idle")
    more = {"calls": "shared", "max_prompt": 24_000, "marker": lambda: MARKER, **more}
    return await judge_session(due, session, traces, script, **more)


def by_name(verdict: Verdict) -> Mapping[str, Outcome]:
    """Outcomes by evaluator."""
    return {outcome.evaluator: outcome for outcome in verdict.outcomes}


def failed(verdict: Verdict) -> set[str]:
    """The evaluators whose outcome is an error."""
    return {outcome.evaluator for outcome in verdict.outcomes if outcome.state == "failed"}


def answering(change: Callable[[str, dict[str, Any]], JSON] | None = None) -> ScriptedJudge:
    """A judge that answers 0.5 everywhere, after `change` of (stage, answer)."""

    def script(prompt: Prompt) -> str:
        answer = fitting(prompt.schema)
        return json.dumps(answer if change is None else change(prompt.name, answer))

    return ScriptedJudge(script)


def always(text: str | Exception) -> ScriptedJudge:
    """A judge that says one thing."""
    return ScriptedJudge(lambda _: text)
