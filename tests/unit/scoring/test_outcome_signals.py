import dataclasses
from collections.abc import Collection

from msgspec.structs import replace

from collector.records.sessions import SessionTurn
from collector.records.signal import Coverage, Signal
from collector.records.subject import Subject
from collector.scoring.effects import Publication
from collector.scoring.outcome_signals import OutcomeSignals
from collector.scoring.session_end import unscored_turn
from evaluators.judge_use import JudgeUse
from evaluators.model import Outcome
from tests.support.scoring_fakes import CLOSED, judged_rules, make_record, rules, summarised

SCORED = Outcome(
    evaluator="confidence", version="1", method="deterministic", state="scored", score=0.5
)
USE = JudgeUse(model="m", calls=1, input_tokens=2, output_tokens=3, cost_usd=None, cached=False)
JUDGED = replace(SCORED, method="llm_judge", judge=USE)
ENTRY: SessionTurn = unscored_turn(
    summarised(make_record("t1", seen=3.0, revision=2)), service="bot", session_id="s", offset=7
)
SESSION = replace(CLOSED, agent_version="2", revision=11)


def of_trace(*outcomes: Outcome, known: Collection[str] | None = ()) -> list[Publication]:
    half = dataclasses.replace(judged_rules(), probability=0.5)
    signals = OutcomeSignals(rules=rules(half))
    return signals.of_trace(ENTRY, outcomes, known)[0]


def test_every_field_of_a_subject_but_its_times_is_a_field_of_the_signal() -> None:
    hidden = {"seen", "start", "first_trace", "newest_trace", "more"}
    assert set(Subject.__struct_fields__) - set(Signal.__struct_fields__) == hidden


def test_a_signal_of_a_trace_names_its_trace_and_its_session() -> None:
    (publication,) = of_trace(SCORED)

    signal = publication.signal
    assert (signal.scope, signal.trace_id, signal.span_id) == ("trace", "t1", "b" * 16)
    assert (signal.service, signal.session_id, signal.session_source) == ("bot", "s", "session.id")
    assert (signal.agent, signal.agent_version, signal.closed) == ("planner", None, "root_ended")
    assert (signal.time, signal.revision) == ("1970-01-01T00:00:03.000000Z", 2)
    assert (signal.evaluator, signal.score, signal.outcome) == ("confidence", 0.5, "scored")


def test_a_signal_of_a_closed_session_names_no_trace() -> None:
    tone = replace(JUDGED, evaluator="tone", coverage=(3, 2))
    signals = OutcomeSignals(rules=rules(judged_rules()))

    (publication,) = signals.of_session_input(SESSION, [tone], "d")

    signal = publication.signal
    assert (signal.scope, signal.trace_id, signal.span_id) == ("session", None, None)
    assert (signal.agent, signal.agent_version, signal.closed) == ("planner", "2", "idle")
    assert (signal.revision, signal.coverage) == (11, Coverage(expected=3, present=2))
    assert signal.judge == USE


def test_only_judged_outcomes_were_sampled() -> None:
    stand_in, judged = of_trace(SCORED, JUDGED)

    assert stand_in.signal.sample_probability == 1.0
    assert judged.signal.sample_probability == 0.5


def test_the_first_final_outcome_of_an_evaluator_is_marked() -> None:
    def is_first(outcome: Outcome, known: Collection[str] | None) -> bool:
        (publication,) = of_trace(outcome, known=known)
        return publication.is_first

    assert is_first(SCORED, ())
    assert not is_first(SCORED, {"confidence"})
    assert not is_first(replace(SCORED, final=False), ())
    assert not is_first(SCORED, None), "a revision of a trace that has left the window"


def test_an_outcome_that_is_not_emitted_leaves_an_id_and_no_signal() -> None:
    hidden = replace(SCORED, evaluator="hidden")

    publish, entry = OutcomeSignals(rules=rules()).of_trace(ENTRY, [hidden], ())

    assert publish == []
    assert entry.turn.scores == {"hidden": 0.5}
    assert set(entry.signal_ids) == {"hidden"}


def test_the_id_depends_on_the_trace_and_its_outcome_and_not_on_the_score() -> None:
    (one,), (other_score,), (other_version,) = (
        of_trace(SCORED),
        of_trace(replace(SCORED, score=0.1)),
        of_trace(replace(SCORED, version="2")),
    )

    assert one.signal.id == other_score.signal.id
    assert one.signal.id != other_version.signal.id


def test_a_trace_that_waits_in_vain_ends_with_skipped_outcomes() -> None:
    entry = replace(ENTRY, due=("confidence",))

    publish, ended = OutcomeSignals(rules=rules(judged_rules())).without_verdict(entry, "overload")

    (signal,) = (each.signal for each in publish)
    assert (signal.outcome, signal.reason) == ("skipped", "overload")
    assert ended.due == ()
    assert ended.turn.unscored == ("confidence",)
