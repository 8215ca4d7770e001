"""One decision a trace, by the log alone: for a reason, by share, within the limit of a minute; of recordings too."""

import hashlib
from collections import Counter
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from collector.config.forward import Keep
from collector.forward.keeping import Keeping
from collector.forward.recorded import Amount, KeptOfRecordings
from collector.log.port import TRACES, Position, Record
from collector.otlp.trace_state import NEVER, threshold_of
from collector.records.keeping import ClosedTrace, Decision, KeepingState, agent_key
from tests.support.api_records import trace, trace_value

WAIT, LATE = 30.0, 600.0


def closed(number: int, **fields: Any) -> ClosedTrace:
    trace_id = hashlib.sha256(str(number).encode()).digest()[:16]
    usual = ClosedTrace(
        trace_id=trace_id,
        offset=number,
        service="bot",
        agent="planner",
        version=None,
        session=number.to_bytes(16),
        duration=1.0,
        randomness=int.from_bytes(trace_id[-7:]),
        failed=False,
        is_other=False,
    )
    return replace(usual, **fields)


def keeping(**settings: Any) -> Keeping:
    return Keeping(Keep(new_versions=0, wait=WAIT, **settings), late=LATE)


def due(it: Keeping, now: float) -> list[Decision]:
    return [*it.due(now)]


def decided(it: Keeping, *traces: ClosedTrace, at: float = 1000.0) -> list[Decision]:
    for each in traces:
        assert it.closed(each, at) == []
    return due(it, at + WAIT)


def test_a_trace_is_decided_once_and_not_before_its_time() -> None:
    it = keeping()
    it.closed(closed(1, failed=True), 1000.0)

    assert due(it, 1000.0 + WAIT - 0.001) == []
    (decision,) = due(it, 1000.0 + WAIT)
    assert (decision.reason, decision.is_kept, decision.threshold) == ("failed", True, 0)
    assert due(it, 9999.0) == []


def test_a_share_of_the_rest_is_kept_and_stands_for_all() -> None:
    found = decided(keeping(share=0.05), *(closed(number) for number in range(20_000)))

    kept = [each for each in found if each.is_kept]
    assert len(kept) == pytest.approx(1000, rel=0.1)
    assert {each.threshold for each in kept} == {threshold_of(0.05)}
    assert sum(NEVER / (NEVER - each.threshold) for each in kept) == pytest.approx(20_000, rel=0.1)
    assert {each.reason for each in found} == {"share"}


def test_every_member_keeps_the_same_share() -> None:
    some = [closed(number) for number in range(500)]
    few = {each.trace.trace_id for each in decided(keeping(share=0.1), *some) if each.is_kept}
    more = {
        each.trace.trace_id for each in decided(keeping(share=0.3), *reversed(some)) if each.is_kept
    }

    assert few < more


@pytest.mark.parametrize(("others", "kept"), [(1.0, True), (0.0, False)])
def test_traces_of_no_agent_have_a_share_of_their_own(*, others: float, kept: bool) -> None:
    (decision,) = decided(keeping(share=0.5, others=others), closed(1, is_other=True))

    assert (decision.is_kept, decision.reason) == (kept, "other")


def test_what_is_slower_than_its_agents_own_traces_is_kept() -> None:
    it = keeping(share=0.0)
    first = decided(it, *(closed(number, duration=50.0 - number) for number in range(19)))
    assert not any(each.is_kept for each in first), "below 20 traces nothing is slow"
    decided(it, *(closed(number, duration=float(number % 7)) for number in range(20, 300)))

    slow, usual, another = decided(
        it,
        closed(300, duration=8.0),
        closed(301, duration=6.0),
        closed(302, duration=8.0, agent="writer"),
        at=2000.0,
    )

    assert [each.is_kept for each in (slow, usual, another)] == [True, False, False]
    assert slow.reason == "slow"


def test_the_first_sessions_of_a_version_are_kept_with_all_their_traces() -> None:
    it = Keeping(Keep(share=0.0, new_versions=2, wait=WAIT), late=LATE)
    sessions = [b"%016d" % number for number in (1, 2, 3)]

    first = decided(it, *(closed(n, version="2", session=s) for n, s in enumerate(sessions)))
    again = decided(
        it, closed(10, version="2", session=sessions[1]), closed(11, session=sessions[0]), at=2000.0
    )

    assert [each.is_kept for each in first] == [True, True, False]
    assert [(each.is_kept, each.reason) for each in again] == [
        (True, "new_version"),
        (False, "share"),
    ]


def test_what_fails_after_it_was_dropped_is_sent_whole_once() -> None:
    it = keeping(share=0.0)
    decided(it, closed(1))

    (order,) = it.failed(closed(1).trace_id, 1100.0)
    assert (order.decision.reason, order.after) == ("failed_late", None)
    assert it.failed(closed(1).trace_id, 1101.0) == []


def test_what_is_late_follows_a_trace_that_was_kept() -> None:
    it = keeping(share=0.0)
    decided(it, closed(1, failed=True))

    (order,) = it.closed(closed(1, offset=50), 1100.0)
    assert (order.decision.trace.offset, order.after) == (50, 1)
    assert it.closed(closed(1, offset=50), 1100.0) == [], "read again after a restart"


def test_after_a_while_nothing_follows() -> None:
    it = keeping(share=0.0)
    decided(it, closed(1))

    assert it.failed(closed(1).trace_id, 1030.0 + LATE + 1) == []


def test_a_session_that_fails_brings_its_traces_that_were_dropped() -> None:
    it = keeping(share=0.0)
    session = b"s" * 16
    decided(it, closed(1, session=session), closed(2, session=session), closed(3))

    orders = it.session(session, 1100.0, fails=True)
    assert {each.decision.trace.trace_id for each in orders} == {closed(n).trace_id for n in (1, 2)}
    (next_one,) = decided(it, closed(4, session=session), at=1200.0)
    assert next_one.reason == "failed"

    assert it.session(session, 1300.0, fails=False) == []
    (after,) = decided(it, closed(5, session=session), at=1400.0)
    assert not after.is_kept


def test_nothing_is_kept_for_a_reason_that_is_off() -> None:
    it = keeping(share=0.0, failed=False, feedback=False, alarms=False)
    it.alarmed([agent_key("bot", "planner")])
    session = b"s" * 16
    decided(it, closed(1, session=session))

    assert it.failed(closed(1).trace_id, 1100.0) == []
    assert it.session(session, 1100.0, fails=True) == []
    assert it.said(closed(1).trace_id, 1100.0) == []
    (decision,) = decided(it, closed(2, session=session, failed=True), at=1200.0)
    assert not decision.is_kept


def test_a_flood_that_lasts_uses_the_limit_each_minute_and_keeps_every_agent() -> None:
    """10,000 failing traces a minute of 37 agents, and two of each of fifty others."""
    it = keeping(per_minute=300)
    agents = [f"agent {number % 37}" for number in range(9_900)]
    agents += [f"rare {number % 50}" for number in range(100)]
    kept: Counter[int] = Counter()
    seen: dict[int, set[str]] = {}
    for number in range(36_000):
        agent, now = agents[number * 7919 % 10_000], 1200.0 - WAIT + 0.006 * number
        it.closed(closed(number, agent=agent, failed=True), now)
        for each in it.due(now):
            if each.is_kept:
                kept[int(each.decided // 60)] += 1
                seen.setdefault(int(each.decided // 60), set()).add(each.trace.agent)

    assert kept[20] <= 300 + 50  # the first minute does not know the others yet
    assert all(290 <= kept[minute] <= 315 for minute in (21, 22))
    assert all(seen[minute] == set(agents) for minute in (20, 21, 22))


def test_what_a_limit_keeps_still_says_how_many_there_were() -> None:
    it = keeping(per_minute=600)
    found = decided(it, *(closed(n, failed=True) for n in range(5_000)), at=1200.0)

    kept = [each for each in found if each.is_kept]
    assert len(kept) <= 600
    assert {each.reason for each in found if not each.is_kept} == {"per_minute"}
    estimate = sum(NEVER / (NEVER - each.threshold) for each in kept)
    assert estimate == pytest.approx(5_000, rel=0.35)


def test_a_restart_at_any_moment_decides_the_same() -> None:
    """The state is written with the decisions; what is not decided is read again."""
    settings = Keep(share=0.3, per_minute=40, new_versions=3, wait=WAIT)

    def made(n: int) -> ClosedTrace:
        of_session = {"version": f"{n // 100}", "session": b"%016d" % (n // 4)}
        return closed(n, failed=n % 5 == 0, duration=float(n % 13), **of_session)

    def run(*restarts: int) -> list[Decision]:
        it, found, left = Keeping(settings, late=LATE), list[Decision](), {*restarts}
        read = 0
        while read < 300:
            now = 1000.0 + 0.7 * read
            found += due(it, now)
            it.closed(made(read), now)
            read += 1
            if read in left:
                left.remove(read)
                state = msgspec.msgpack.decode(msgspec.msgpack.encode(it.state), type=KeepingState)
                read = read if it.oldest is None else it.oldest
                it = Keeping(settings, late=LATE, state=state)
        return [*found, *due(it, 1e9)]

    assert run(*range(1, 300, 7)) == run()


def test_decisions_are_bounded_by_their_age() -> None:
    it = keeping()
    for minute in range(60):
        decided(it, closed(minute), at=1000.0 + 60 * minute)

    assert len(it.state.decisions) <= LATE / 60 + 1


def test_replayed_decisions_make_the_same_state() -> None:
    it = keeping(share=0.2)
    found = decided(it, *(closed(n, failed=n % 3 == 0) for n in range(100)))
    other = keeping(share=0.2)
    for each in found:
        other.apply(replace(each))

    assert other.state == it.state


def test_while_an_alarm_stands_all_traces_of_its_agent_are_kept() -> None:
    it = keeping(share=0.0)
    it.state.alarms = [agent_key("bot", "planner")]
    one, other = decided(it, closed(1), closed(2, agent="writer"))
    it.state.alarms = []
    (after,) = decided(it, closed(3), at=2000.0)

    assert [each.is_kept for each in (one, other, after)] == [True, False, False]
    assert one.reason == "alarm"


@pytest.mark.parametrize("of_session", [False, True])
def test_what_somebody_spoke_of_is_kept_and_sent_after_all(*, of_session: bool) -> None:
    it = keeping(share=0.0)
    session = b"s" * 16
    first, second = closed(1, session=session), closed(2, session=session)
    decided(it, first)
    it.closed(second, 1100.0)

    orders = it.said(session if of_session else first.trace_id, 1101.0)

    assert [each.decision.reason for each in orders] == ["feedback"]
    assert [each.is_kept for each in due(it, 1130.0)] == [of_session]


def record(number: int, session: str, **fields: Any) -> Record:
    value = trace_value(trace(number, session_id=session, **fields))
    return Record(position=Position(TRACES, 0, number), key=session.encode(), value=value, time=0.0)


def signal(scope: str, *, success: bool, number: int | None = None) -> dict[str, Any]:
    trace_id = None if number is None else f"{number:032x}"
    return {"scope": scope, "trace_id": trace_id, "success": success}


def test_every_trace_of_a_session_that_failed_is_kept_and_the_rest_by_share() -> None:
    it = KeptOfRecordings(Keep(share=0.0, slow=None, new_versions=0))
    it.add([signal("session", success=False)], [record(1, "a"), record(2, "a")])
    it.add([signal("trace", success=False, number=3)], [record(3, "b"), record(4, "b")])
    it.add([signal("session", success=True)], [record(5, "c"), record(6, "c", status="error")])

    found = it.by_reason({f"{number:032x}": 100 * number for number in range(7)})

    assert found == {
        "failed": Amount(traces=4, spans=8, size=100 * (1 + 2 + 3 + 6)),
        "dropped": Amount(traces=2, spans=4, size=100 * (4 + 5)),
        "all": Amount(traces=6, spans=12, size=100 * 21),
    }
    assert [each.trace.failed for each in it.decisions()] == [True] * 3 + [False, False, True]
