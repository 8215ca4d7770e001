"""The room over a log of the tests, with judges that a test decides."""

import pytest

from collector.config.tree import JudgeConfig
from collector.judging import session_turns
from collector.judging.budget import Budget
from collector.judging.port import JudgeLateError, SessionJob, TraceJob
from collector.judging.session_turns import PlacedTurn, SessionTurns
from collector.log.port import TRACES
from collector.records.codec import encode
from collector.records.more import AskRecord
from collector.records.traces import TraceRecord, VerdictRecord, decode_traces
from evaluators.model import Outcome
from tests.support.judging_stand import KEY, NOW, Stand, turn


async def test_a_verdict_and_its_commit_are_one_write() -> None:
    stand = Stand()
    stand.put(turn(1))
    await stand.drain()

    ((records, commits),) = [call for call in stand.log.calls if call[0]]
    assert len(records) == 1
    assert [(each.group, each.offset) for each in commits] == [("judging", 1)]
    (verdict,) = stand.verdicts
    assert (verdict.subject, verdict.digest) == (turn(1).trace_id, "d1")
    assert (verdict.calls, verdict.cost_usd) == (2, 0.5)
    assert {each.evaluator for each in verdict.outcomes} == {"loop_detection", "helpfulness"}
    assert stand.judges.answered == [0]


async def test_a_restart_asks_only_for_what_has_no_verdict_and_restores_the_spend() -> None:
    first = Stand()
    first.put(turn(1), turn(2))
    await first.drain()
    # The commit is lost, and a third trace came.
    first.log.forget_commits()
    second = Stand(first.log)
    second.put(turn(3))
    await second.drain()

    asked = [job.owner for job in second.judges.jobs if isinstance(job, TraceJob)]
    assert asked == [f"trace/bot/{turn(3).trace_id}/d3"]
    assert second.budget.remaining(NOW) == pytest.approx(10.0 - 2 * 0.5)
    assert sorted(each.subject for each in second.verdicts) == [turn(n).trace_id for n in (1, 2, 3)]


async def test_two_rooms_with_one_budget_restore_a_verdict_once() -> None:
    """That of our evaluators and that of third parties' read the same verdicts."""
    first = Stand()
    first.put(turn(1), turn(2))
    await first.drain()
    shared = Budget(usd_per_day=10.0, calls_per_minute=60)

    for _ in ("ours", "theirs"):
        await Stand(first.log, budget=shared).drain()

    assert shared.remaining(NOW) == pytest.approx(10.0 - 2 * 0.5)


@pytest.mark.parametrize(("name", "asked"), [("echoes", 1), ("helpfulness", 0)])
async def test_a_verdict_of_other_evaluators_is_not_this_rooms(name: str, asked: int) -> None:
    """Workers give verdicts of their own about the same traces."""
    stand = Stand()
    trace = turn(1)
    outcome = Outcome(evaluator=name, version="1", method="custom", state="scored", score=0.5)
    verdict = VerdictRecord(
        scope="trace",
        service="bot",
        session_id="s-1",
        subject=trace.trace_id,
        digest=trace.digest,
        outcomes=(outcome,),
    )
    stand.log.append(TRACES, encode(verdict), key=KEY)
    stand.put(trace)

    await stand.drain()

    assert len(stand.judges.jobs) == asked


async def test_what_was_under_way_at_the_stop_is_asked_again_and_not_committed_over() -> None:
    first = Stand()
    first.judges.answers = 0
    first.put(turn(1), turn(2))
    async with first.running():
        await first.judges.has(2)
    assert not first.verdicts
    assert not first.log.commits
    second = Stand(first.log)
    await second.drain()
    assert len(second.judges.jobs) == 2
    assert len(second.verdicts) == 2


async def test_history_is_the_three_turns_before_in_order_of_their_start() -> None:
    stand = Stand()
    stand.put(turn(2), turn(1), turn(3), turn(4), turn(5))
    await stand.drain()
    assert stand.judges.compared == [
        [],
        [],
        ["answer 1", "answer 2"],
        ["answer 1", "answer 2", "answer 3"],
        ["answer 2", "answer 3", "answer 4"],
    ]
    job = stand.judges.jobs[-1]
    assert isinstance(job, TraceJob)
    assert job.turn == 5
    assert [each.digest for each in job.history] == ["d2", "d3", "d4"]


async def test_history_outlives_a_restart_and_ends_with_the_session() -> None:
    first = Stand()
    first.put(turn(1), turn(2))
    await first.drain()
    second = Stand(first.log)
    second.put(turn(3))
    await second.drain()
    offsets = [
        each.position.offset
        for each in first.log.history(TRACES)
        if isinstance(decode_traces(each.value), TraceRecord)
    ]
    second.close(*offsets)
    second.put(turn(4))
    await second.drain()
    assert second.judges.compared == [["answer 1", "answer 2"], []]


async def test_a_closed_session_is_judged_from_the_traces_the_log_has() -> None:
    stand = Stand()
    stand.put(turn(1), turn(2))
    stand.close(0, 1, 77, digest="sd")
    await stand.drain()
    job = stand.judges.jobs[-1]
    assert isinstance(job, SessionJob)
    assert (job.closed, len(job.traces)) == ("idle", 2)
    verdict = stand.verdicts[-1]
    assert (verdict.scope, verdict.subject, verdict.digest) == ("session", "s-1", "sd")
    assert [each.evaluator for each in verdict.outcomes] == ["conversation_quality"]


async def test_a_verdict_too_large_for_the_log_fails_every_due_evaluator() -> None:
    stand = Stand()
    stand.judges.says = "x" * (1 << 20)
    stand.put(turn(1))
    stand.log.largest[TRACES] = 1 << 20
    await stand.drain()
    (verdict,) = stand.verdicts
    found = {
        each.evaluator: (each.state, each.error and each.error.type) for each in verdict.outcomes
    }
    assert found == dict.fromkeys(("helpfulness", "loop_detection"), ("failed", "too_large"))


async def test_a_late_judge_writes_nothing_and_is_passed_over() -> None:
    stand = Stand()
    stand.judges.error = JudgeLateError()
    stand.put(turn(1))
    await stand.drain()
    assert not stand.verdicts


async def test_a_record_that_cannot_be_read_is_passed_over() -> None:
    stand = Stand()
    stand.log.append(TRACES, b"\xc1", key=KEY)
    stand.put(turn(1))
    await stand.drain()
    assert len(stand.judges.jobs) == 1
    assert stand.log.committed("judging", TRACES, 0).offset == 2


async def test_a_trace_beyond_the_sample_is_asked_about_once_when_scoring_wants_it() -> None:
    """Also by a room that begins again with its commit behind the request."""
    config = JudgeConfig(model="m", sample=0.0)
    stand = Stand(config=config)
    stand.put(turn(1), turn(2))
    ask = AskRecord(service="bot", session_id="s-1", offset=1)
    stand.log.append(TRACES, encode(ask), key=KEY)
    stand.log.append(TRACES, encode(ask), key=KEY)
    await stand.drain()
    stand.log.forget_commits()
    again = Stand(stand.log, config)
    await again.drain()

    assert [(each.subject, each.more) for each in again.verdicts] == [(turn(2).trace_id, True)]
    assert (len(stand.judges.jobs), len(again.judges.jobs)) == (1, 0)
    assert stand.judges.jobs[0].more


# --- what the room knows of the turns of a session --------------------------------------------------------------------


def placed(start: int, name: str | None = None, *, offset: int = 0) -> PlacedTurn:
    return PlacedTurn(start=start, trace_id=name or str(start), offset=offset)


def test_a_later_revision_takes_the_place_of_the_earlier_one() -> None:
    turns = SessionTurns()
    turns.add(b"k", placed(5, "a"))
    turns.add(b"k", placed(6, "b"))
    assert turns.add(b"k", placed(7, "a", offset=9)) == 2
    assert [each.trace_id for each in turns.before(b"k", placed(8, "c"), 3)] == ["b", "a"]
    assert turns.before(b"k", placed(8, "c"), 1)[0].offset == 9


def test_of_a_long_session_only_the_newest_turns_are_kept_without_a_number() -> None:
    turns = SessionTurns()
    for start in range(session_turns.TURNS):
        assert turns.add(b"k", placed(start, f"{start:05}")) == start + 1
    newest = placed(session_turns.TURNS, "new")
    assert turns.add(b"k", newest) is None
    assert [each.start for each in turns.before(b"k", newest, 2)] == [998, 999]


def test_closing_forgets_those_turns_alone() -> None:
    turns = SessionTurns()
    turns.add(b"k", placed(1, offset=4))
    turns.add(b"k", placed(2, offset=5))
    turns.closed(b"k", [4])
    assert turns.add(b"k", placed(3, offset=6)) == 2
    turns.closed(b"other", [5])


def test_the_turns_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_turns, "TURNS_IN_ALL", 10)
    turns = SessionTurns()
    for start in range(8):
        turns.add(b"%d" % (start % 2), placed(start, offset=start))
    turns.closed(b"0", [0, 2])

    for start in range(10, 16):
        turns.add(b"long", placed(start))
    assert turns.add(b"1", placed(20)) == 5, "nothing is forgotten up to the limit"
    turns.add(b"long", placed(30))

    assert turns.before(b"0", placed(40), 9) == (), "the session that was quiet longest"
    assert len(turns.before(b"1", placed(40), 9)) == 5
