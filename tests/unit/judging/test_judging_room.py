"""The room over a log of the tests, with judges that a test decides."""

import pytest

from collector.config.tree import JudgeConfig
from collector.judging.budget import Budget
from collector.judging.port import JudgeLateError, SessionJob, TraceJob
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
    first.judges.holds = True
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
