"""What of a session is ranked is a function of the set of its traces, never of their arrival."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import SessionWindow
from collector.records.sessions import SessionHead, SessionsTopic, SessionTurn, session_key
from collector.records.traces import TraceRecord, WorkRecord
from collector.scoring.effects import Effects, PlacedTrace, Tombstone
from collector.scoring.open_sessions import OpenSessions
from evaluators.model import ToolCall
from evaluators.uses import Work
from tests.property.test_scoring_property import in_revision_order
from tests.support.examples import examples
from tests.support.scoring_fakes import make_record, rules, summarised

KEY = session_key("bot", "s")
WINDOW = 5


@st.composite
def arrivals(draw: st.DrawFn) -> list[TraceRecord]:
    """Traces of one session, some of them revised, others without a model or a tool call."""
    records: list[TraceRecord] = []
    for number in range(draw(st.integers(1, 8))):
        is_turn = draw(st.booleans())  # of every revision: what slid out does not come back
        for revision in range(draw(st.integers(1, 2))):
            record = make_record(
                f"t{number}",
                start=draw(st.integers(0, 3)),
                revision=revision,
                seen=float(number),
                turn=is_turn,
            )
            calls = [
                ToolCall(
                    name=name,
                    arguments={"n": draw(st.integers(0, 1))},
                    result=draw(st.sampled_from(["done", "", None])),
                    error=draw(st.sampled_from([None, None, "TimeoutError: 5 s", "denied"])),
                )
                for name in draw(st.lists(st.sampled_from(["book", "get", "mine"]), max_size=3))
                if is_turn
            ]
            trace = replace(
                record.trace,
                input="q" * draw(st.integers(0, 9)),
                tool_calls=tuple(calls),
                models=(f"m{number}",),
            )
            records.append(msgspec.structs.replace(record, trace=trace))
    return records


def lived(records: Sequence[TraceRecord], *, crash_at: int | None = None) -> list[WorkRecord]:
    """What a session that got these records and closed was ranked by, each time; a restart comes after `crash_at`."""
    ranked = replace(rules(), ranks=True)
    limits = SessionWindow(max_traces=WINDOW)

    def fresh() -> OpenSessions:
        return OpenSessions(partition=0, rules=ranked, limits=limits)

    sessions = fresh()
    state: dict[str, SessionsTopic] = {}
    work: list[WorkRecord] = []

    def apply(effects: Effects) -> None:
        work.extend(each for each in effects.work if isinstance(each, WorkRecord))
        for change in effects.changes:
            if isinstance(change, Tombstone):
                state.pop(_name(change.state), None)
            elif isinstance(change, SessionHead | SessionTurn):
                state[_name(change)] = change

    for offset, record in enumerate(records):
        if offset == crash_at:
            sessions = fresh()
            sessions.restore(state.values())
        task = sessions.take(
            summarised(record, read_only={"mine"}), key=KEY, offset=offset, now=0.0
        )
        if isinstance(task, PlacedTrace):
            apply(sessions.finish(task, {}))
    for effects in sessions.close_all("idle"):
        apply(effects)
    return work


def _name(state: SessionsTopic) -> str:
    return state.turn.trace_id if isinstance(state, SessionTurn) else ""


def content(record: WorkRecord) -> WorkRecord:
    """What is ranked, without its place in the log."""
    return msgspec.structs.replace(record, revision=0)


@settings(deadline=None, max_examples=examples(80))
@given(st.data(), arrivals(), st.integers(0, 9))
def test_work_does_not_depend_on_the_order_in_which_traces_arrive(
    data: st.DataObject, records: list[TraceRecord], crash_at: int
) -> None:
    shuffled = in_revision_order(data.draw(st.permutations(records)))

    one, other = lived(records)[-1], lived(shuffled, crash_at=crash_at)[-1]

    assert content(one) == content(other)
    assert one.closed == "idle"


@settings(deadline=None, max_examples=examples(60))
@given(arrivals())
def test_work_is_the_sum_over_the_turns_of_the_window(records: list[TraceRecord]) -> None:
    newest = {each.trace.trace_id: each for each in records}
    inside = [each for each in newest.values() if each.trace.is_turn][-WINDOW:]

    work = lived(records)[-1]

    assert work.work.turns == len(inside)
    assert work.work.questions == sum(len(each.trace.input or "") for each in inside)
    assert work.work.tool_calls == sum(len(each.trace.tool_calls) for each in inside)
    assert len(work.writes) == len(
        {
            (call.name, call.arguments["n"])
            for each in inside
            for call in each.trace.tool_calls
            if call.name == "book" and not call.failed
        }
    )


def test_an_open_session_says_its_work_whenever_it_changes() -> None:
    records = [make_record("t0"), make_record("t1", start=1), make_record("t1", start=1)]

    opened, grown, closed = lived(records)

    assert [each.work.turns for each in (opened, grown, closed)] == [1, 2, 2]
    assert [opened.closed, grown.closed, closed.closed] == [None, None, "idle"]
    assert opened.work != Work() != grown.work
    assert closed.revision > grown.revision > opened.revision


def test_a_turn_says_what_it_used_and_whether_its_session_repeats_a_call() -> None:
    call = ToolCall(name="get", arguments={"n": 1}, result="done")
    turns = [[call], [call, ToolCall(name="book", arguments={}, error="TimeoutError: 5 s")], [call]]
    records = [
        msgspec.structs.replace(each, trace=replace(each.trace, tool_calls=tuple(calls)))
        for number, calls in enumerate(turns)
        for each in [make_record(f"t{number}", start=number)]
    ]

    *open_, closed = lived(records)

    used = [each.used for each in open_]
    assert [each and each.trace_id for each in used] == ["t0", "t1", "t2"]
    assert [
        {use.tool: (use.calls, use.failed, use.repeated) for use in each.uses.tools}
        for each in used
        if each is not None
    ] == [
        {"get": (1, False, False)},
        {"get": (1, False, False), "book": (1, True, False)},
        {"get": (1, False, True)},
    ]
    assert closed.used is None
