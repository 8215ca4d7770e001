"""Scoring publishes the final outcome of `runaway` itself, but where the model calls of other traces decide it."""

import pytest
from msgspec.structs import replace

from collector.records.trace_outcomes import TraceOutcomes
from collector.records.traces import RunawayRecord, TraceRecord, WorkRecord
from collector.scoring.effects import Effects
from collector.scoring.rules import Rules
from evaluators.model import ModelCall, ToolCall
from evaluators.plan import make_plan
from evaluators.run import SessionScorer, score_trace
from tests.support.evaluating import OURS, a_trace
from tests.support.scoring_fakes import open_sessions, summarised, taken

PLAN = make_plan(OURS, {}, embedder=None, only=["runaway"])
RULES = Rules.of(PLAN, lambda: SessionScorer(PLAN))


def finished(models: int, *, tools: int = 2, revision: int = 0) -> Effects:
    """The effects of a trace with so many model calls and so many calls of one tool."""
    trace = a_trace(
        trace_id="1" * 32,
        digest=f"{models}-{tools}",
        models=("gpt-4o",),
        model_calls=tuple(ModelCall(span_id=f"m{n}") for n in range(models)),
        tool_calls=tuple(
            ToolCall(name="search", arguments={}, result="none", span_id=f"{n:016x}")
            for n in range(tools)
        ),
    )
    record = TraceRecord(trace=trace, spans=(), revision=revision, seen=100.0)
    read = replace(summarised(record), outcomes=TraceOutcomes(score_trace(PLAN, trace)))
    return taken(open_sessions(RULES), read, offset=0, now=100.0)


def handed(effects: Effects) -> list[RunawayRecord]:
    return [each for each in effects.work if isinstance(each, RunawayRecord)]


@pytest.mark.parametrize(("models", "tools"), [(19, 2), (1, 0), (40, 11)])
def test_what_other_traces_do_not_decide_is_published_here(models: int, tools: int) -> None:
    effects = finished(models, tools=tools)

    (publication,) = effects.publish
    assert publication.signal.evaluator == "runaway"
    assert (publication.signal.final, publication.is_first) == (True, True)
    assert handed(effects) == []


@pytest.mark.parametrize("tools", [0, 2])
def test_twenty_model_calls_are_decided_where_the_usual_is_known(tools: int) -> None:
    effects = finished(20, tools=tools)

    (record,) = handed(effects)
    assert effects.publish == ()
    assert (record.model, record.model_calls, record.digest) == ("gpt-4o", 20, f"20-{tools}")
    assert (record.subject.closed, record.outcome.final) == ("root_ended", True)
    assert record.is_first
    assert not handed(finished(20, tools=tools, revision=1))[0].is_first


@pytest.mark.parametrize("models", [1, 20])
def test_the_model_calls_of_every_trace_go_with_the_work(models: int) -> None:
    (work,) = (each for each in finished(models).work if isinstance(each, WorkRecord))

    trace = work.trace
    assert trace is not None
    assert (trace.trace_id, trace.model, trace.model_calls) == ("1" * 32, "gpt-4o", models)
