import time
from typing import Any

from collector.records.sessions import SessionTurn
from collector.scoring.outcome_signals import with_outcomes
from collector.scoring.session_end import awaiting, unscored_turn
from collector.scoring.sliding_window import SlidingWindow, ordered_start
from evaluators.model import Failure, Outcome, State, Turn
from evaluators.resources import WINDOW
from tests.support.scoring_fakes import make_record, summarised

USED = ("confidence",)
NANO = 1_000_000_000
DAY = 86_400


def make_window(*, max_traces: int = 1000, max_age: float = 1e6) -> SlidingWindow:
    return SlidingWindow(max_traces=max_traces, max_age=max_age, history=WINDOW, used=[USED, ()])


def make_entry(trace_id: str, start: int, *, seen: float = 0.0, turn: bool = True) -> SessionTurn:
    record = make_record(trace_id, start=start, seen=seen, turn=turn)
    return unscored_turn(summarised(record), service="bot", session_id="s", offset=start)


def outcome(state: State, **fields: Any) -> Outcome:
    fields = {"evaluator": "x", "version": "1", "method": "formula", "state": state, **fields}
    return Outcome(**fields)


def ids(window: SlidingWindow) -> list[str]:
    return [each.turn.trace_id for each in window]


def test_a_turn_that_leaves_affects_the_oldest_that_stay() -> None:
    window = make_window(max_traces=4)
    for n in range(4):
        window.place(make_entry(str(n), n))

    placement = window.place(make_entry("4", 4))

    assert [each.turn.trace_id for each in placement.removed] == ["0"]
    assert placement.affected == ("1", "2", "3")


def test_time_is_the_newest_sight_of_the_turns() -> None:
    window = make_window(max_traces=2)
    window.place(make_entry("0", 0, seen=9.0))
    window.place(make_entry("1", 1, seen=3.0))
    assert window.seen == 9.0

    window.place(make_entry("2", 2, seen=5.0))

    assert window.seen == 9.0
    assert ids(window) == ["0", "2"], "the one seen first has left"


def test_a_trace_older_than_the_window_reaches_is_not_kept() -> None:
    window = make_window(max_traces=2)
    window.place(make_entry("1", 1))
    window.place(make_entry("2", 2))

    placement = window.place(make_entry("0", 0))

    assert not placement.inside
    assert placement.removed == placement.affected == ()
    assert ids(window) == ["1", "2"]


def test_turns_slide_out_by_the_log_time_at_which_they_were_seen() -> None:
    window = make_window(max_age=10)
    window.place(make_entry("0", 9, seen=0))
    window.place(make_entry("5", 8, seen=5))
    window.place(make_entry("6", 10, seen=6))

    placement = window.place(make_entry("11", 7, seen=11))

    assert [each.turn.trace_id for each in placement.removed] == ["0"]
    assert placement.affected == ("5", "6")
    assert ids(window) == ["11", "5", "6"]


def test_a_turn_dated_a_year_ahead_removes_no_other_and_is_passed_after_a_day() -> None:
    window = make_window(max_age=10 * DAY)
    for number in range(3):
        window.place(make_entry(str(number), number * NANO, seen=number))

    ahead = make_entry("ahead", 365 * DAY * NANO, seen=3)
    assert window.place(ahead).removed == ()
    assert ids(window) == ["0", "1", "2", "ahead"]
    window.place(make_entry("later", (DAY + 10) * NANO, seen=DAY + 10))

    assert ids(window) == ["0", "1", "2", "ahead", "later"]
    assert ordered_start(ahead) == (DAY + 3) * NANO


def test_a_trace_without_calls_is_held_but_is_no_turns_predecessor() -> None:
    window = make_window()
    window.place(make_entry("0", 0))
    window.place(make_entry("2", 2))

    placement = window.place(make_entry("1", 1, turn=False))

    assert placement.affected == ()
    assert window.get("1") is not None
    assert [each.trace_id for each in window.turns] == ["0", "2"]
    assert [each.turn.trace_id for each in window.before(make_entry("3", 3))] == ["0", "2"]


def test_traces_without_calls_push_no_turn_out() -> None:
    window = make_window(max_traces=2, max_age=10)
    window.place(make_entry("0", 0))
    for n in range(1, 4):
        window.place(make_entry(str(n), n, turn=False))

    assert ids(window) == ["0", "2", "3"], "they are bounded, too"
    window.place(make_entry("far", 1000 * NANO, seen=1000, turn=False))
    assert ids(window) == ["0", "far"]


def test_the_input_digest_tells_which_signals_were_read() -> None:
    window = make_window()
    window.place(make_entry("1", 1))
    before, unread = window.input_digest(USED), window.input_digest(())
    entry = window.get("1")
    assert entry is not None
    scored = outcome("scored", evaluator="confidence", score=0.5)

    window.replace(with_outcomes(entry, [scored], {"confidence": "f" * 32}, assumed=()))

    assert window.input_digest(USED) != before
    assert window.input_digest(()) == unread


def test_assumed_scores_count_for_the_evaluators_that_declare_it_alone() -> None:
    names = ("loop_detection", "coherence", "tool_correctness")
    assumed = [outcome("not_applicable", evaluator=each, assumed=1.0) for each in names]
    error = Failure(type="timeout", message="")
    failed = outcome("failed", evaluator="confidence", error=error)

    entry = with_outcomes(make_entry("1", 1), [*assumed, failed], {}, assumed={*names[:2]})

    assert entry.turn.scores == {"coherence": 1.0, "loop_detection": 1.0}
    assert entry.turn.assumed == ("coherence", "loop_detection")
    assert entry.turn.unscored == ("confidence",)
    assert entry.turn.unscored_why == {"confidence": "timeout"}


def test_the_value_of_a_measured_outcome_counts() -> None:
    measured = outcome("measured", measured=0.5)

    assert with_outcomes(make_entry("1", 1), [measured], {}, assumed=()).turn.scores == {"x": 0.5}


def test_a_score_in_place_of_an_assumed_or_missing_one_is_neither() -> None:
    def scored_after(before: Outcome) -> Turn:
        entry = with_outcomes(make_entry("1", 1), [before], {}, assumed={"x"})
        entry = with_outcomes(entry, [outcome("scored", score=0.5)], {}, assumed={"x"})
        return entry.turn

    for before in (
        outcome("not_applicable", assumed=1.0),
        outcome("not_applicable", reason="no_content"),
        outcome("skipped", reason="budget"),
    ):
        turn = scored_after(before)
        assert (turn.scores, turn.assumed) == ({"x": 0.5}, ())
        assert (turn.unscored, turn.unscored_why) == ((), {})


def test_what_waits_for_a_verdict_is_missing_meanwhile() -> None:
    turn = make_entry("1", 1).turn

    waiting = awaiting(turn, ("confidence",))

    assert (waiting.unscored, waiting.unscored_why) == (("confidence",), {"confidence": "pending"})
    assert awaiting(turn, ()) is turn


def test_a_stand_in_is_no_score_and_keeps_the_session_waiting() -> None:
    stand_in = outcome("scored", score=1.0, final=False)

    entry = with_outcomes(make_entry("1", 1), [stand_in], {"x": "f" * 32}, assumed=())

    assert entry.turn.scores == {}
    assert entry.signal_ids == {}
    assert [each.evaluator for each in entry.outcomes] == ["x"]


def _cost(turns: int) -> float:
    window = make_window(max_traces=turns)
    for n in range(turns):
        window.place(make_entry(f"{n:05}", n))
    more = [make_entry(f"{n:05}", n) for n in range(turns, turns + 200)]
    started = time.process_time()
    for each in more:
        window.place(each)
        window.replace(each)
    return time.process_time() - started


def test_an_update_at_a_thousand_turns_costs_at_most_twice_one_at_ten() -> None:
    ratios = sorted(_cost(1000) / _cost(10) for _ in range(5))

    assert ratios[0] < 2


def test_windows_without_a_turn_differ_by_what_they_hold() -> None:
    window = make_window()
    empty = window.input_digest(USED)
    window.place(make_entry("0", 0, turn=False))
    one = window.input_digest(USED)
    window.place(make_entry("1", 1, turn=False))

    assert len({empty, one, window.input_digest(USED)}) == 3
