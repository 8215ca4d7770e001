"""What scoring a trace costs, in calls of functions: a count that no other process on the machine changes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from collector.config.plan import plan_from
from collector.config.tree import Config
from evaluators.model import JSON, ToolDefinition, Trace
from evaluators.plan import Plan
from evaluators.run import score_trace
from tests.bench.test_signal_cost import calls
from tests.support.bench_traces import read_traces

pytestmark = pytest.mark.bench
TRACES = 60
PLAIN, DECLARED = 360, 2_000
SCHEMA: JSON = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
    },
    "required": ["query"],
    "additionalProperties": False,
}
SEARCH = ToolDefinition(name="search", description="Searches", parameters=SCHEMA)


def score(plan: Plan, traces: Sequence[Trace]) -> None:
    """By every evaluator that needs no model."""
    for trace in traces:
        score_trace(plan, trace)


def test_a_trace_takes_a_bounded_number_of_calls() -> None:
    """Reached: 356 without tools' schemas, 1,700 with them; jsonschema takes 50 us to check the arguments of a call."""
    plan = plan_from(Config.model_validate({"workers": 0, "embedder": {"kind": "none"}}))
    traces = read_traces(TRACES)
    declared = [replace(trace, tools_offered=(SEARCH,)) for trace in traces]
    score(plan, declared[:1])  # the schema is checked once

    plain = calls(partial(score, plan, traces[1:])) / len(traces[1:])
    checked = calls(partial(score, plan, declared[1:])) / len(traces[1:])

    print(f"calls per trace: {plain:.0f}, with tools' schemas {checked:.0f}")
    assert plain < PLAIN
    assert checked < DECLARED
