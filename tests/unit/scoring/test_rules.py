from dataclasses import replace

import msgspec

from collector.records.trace_summary import TraceSummary
from collector.scoring.rules import JudgedRules, Rules
from evaluators.model import ModelCall, Turn
from evaluators.plan import Plan, make_plan
from evaluators.registry import Registry
from evaluators.run import SessionScorer
from tests.support.scoring_fakes import judged_rules, make_record, rules, summarised


def test_the_rules_are_read_off_the_plan() -> None:
    read = rules(judged_rules())

    assert [each.spec.name for each in read.sketched] == ["loop_detection"]
    assert "hidden" not in read.emitted
    assert {"confidence", "agent_reliability", "tone"} <= read.emitted
    assert read.used["agent_reliability"] == ("confidence", "loop_detection")
    assert read.assumed == {"loop_detection"}
    assert read.judged_methods == {("confidence", "llm_judge")}


def test_without_an_embedder_no_trace_is_compared_with_others() -> None:
    plan = make_plan(Registry.discover(), {}, embedder=None)

    assert Rules.of(plan, lambda: SessionScorer(plan)).sketched == ()


def test_of_our_own_evaluators_two_declare_that_an_assumed_score_counts() -> None:
    plan = make_plan(Registry.discover(), {}, embedder="local")

    assert Rules.of(plan, lambda: SessionScorer(plan)).assumed == {"loop_detection", "coherence"}


def test_an_evaluator_that_waits_for_hosted_embeddings_keeps_its_assumed_score() -> None:
    plan = make_plan(Registry.discover(), {}, embedder="hosted", hosted=True)
    judged = JudgedRules(trace=plan.judged)

    assert "coherence" in Rules.of(Plan(), lambda: SessionScorer(Plan()), judged).assumed


def trace(*, unread: str | None = None, turn: bool = True, text: bool = True) -> TraceSummary:
    calls = (ModelCall(span_id="a" * 16),) if turn else ()
    gaps = () if text else ("no_content",)
    record = make_record("t")
    changed = replace(record.trace, unread=unread, model_calls=calls, gaps=gaps)
    return summarised(msgspec.structs.replace(record, trace=changed)).summary


def turn(*, has_text: bool = True) -> Turn:
    return Turn(
        trace_id="t",
        start_time_unix_nano=1,
        duration=1.0,
        digest="d",
        model_calls=1,
        has_text=has_text,
    )


def outcomes(judged: JudgedRules, subject: TraceSummary) -> list[tuple[str, str | None]]:
    found, due = judged.judgement(subject, b"bot\0s", inside=True)
    assert due == (() if found else ("confidence",))
    return [(each.state, each.reason) for each in found]


def test_a_judge_is_asked_about_traces_in_the_sample_that_called_something() -> None:
    everything = judged_rules()
    nothing = judged_rules(samples=lambda _key: False)

    assert outcomes(everything, trace()) == []
    assert outcomes(nothing, trace()) == [("skipped", "sampled_out")]
    assert outcomes(everything, trace(turn=False)) == [("not_applicable", "not_a_turn")]
    assert outcomes(everything, trace(unread="too_deep")) == [("failed", None)]
    assert outcomes(everything, trace(text=False)) == [("not_applicable", "no_content")]


def test_a_judge_is_asked_about_sessions_in_the_sample_that_have_turns() -> None:
    nothing = judged_rules(samples=lambda _key: False)

    assert judged_rules().unasked_session(b"bot\0s", [turn()]) == ()
    (left_out,) = nothing.unasked_session(b"bot\0s", [turn()])
    (empty,) = judged_rules().unasked_session(b"bot\0s", [])
    (blind,) = judged_rules().unasked_session(b"bot\0s", [turn(has_text=False)])

    assert (left_out.evaluator, left_out.reason) == ("tone", "sampled_out")
    assert (empty.state, empty.reason) == ("not_applicable", "not_a_turn")
    assert (blind.state, blind.reason) == ("not_applicable", "no_content")
