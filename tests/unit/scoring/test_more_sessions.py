"""Sessions that are judged beyond `judge.sample`: chosen by what is wanted, whatever they show."""

from collector.log.port import TRACES
from collector.records.codec import encode
from collector.records.more import AskRecord, MoreRecord
from collector.records.sessions import session_key
from collector.records.traces import TraceRecord, decode_traces
from collector.scoring.rules import JudgedRules
from tests.support.faulty_log import FaultyLog
from tests.support.scoring_fakes import (
    append as appended,
)
from tests.support.scoring_fakes import (
    append_bytes,
    judged_rules,
    make_record,
    make_scorer,
    run_to_end,
    scored_log,
    signals,
    verdict_of,
)

EVEN = session_key("bot", "even")


def rules() -> JudgedRules:
    """One session alone is in the sample."""
    return judged_rules(samples=lambda key: key == EVEN)


def append(log: FaultyLog, record: TraceRecord) -> None:
    appended(log, record, stand_in=True)


def want(log: FaultyLog, sessions: int, *, number: int = 1, version: str | None = None) -> None:
    wanted = MoreRecord(
        service="bot", agent="planner", version=version, number=number, sessions=sessions
    )
    append_bytes(log, b"", encode(wanted))


def asked(log: FaultyLog) -> list[str]:
    records = [decode_traces(each.value) for each in log.history(TRACES)]
    return [each.session_id for each in records if isinstance(each, AskRecord)]


async def scored(log: FaultyLog) -> None:
    await run_to_end(make_scorer(log, judged=rules()), log)


async def test_the_next_sessions_that_begin_are_chosen_and_no_others() -> None:
    log = scored_log()
    append(log, make_record("t0", session="open"))
    want(log, 2)
    append(log, make_record("t1", session="open", start=1))
    append(log, make_record("t2", session="else", agent="writer"))
    for name in ("a", "even", "b", "c"):
        append(log, make_record(f"t-{name}", session=name))
    append(log, make_record("t-b2", session="b", start=2))

    await scored(log)

    assert asked(log) == ["a", "b", "b"]


async def test_a_request_for_a_version_leaves_the_others_alone() -> None:
    log = scored_log()
    want(log, 2, version="2")
    append(log, make_record("t1", session="a"))

    await scored(log)

    assert asked(log) == []


async def test_a_restart_chooses_no_session_twice_and_no_more_than_were_wanted() -> None:
    log = scored_log()
    want(log, 2)
    append(log, make_record("t1", session="a"))
    await scored(log)
    append(log, make_record("t2", session="b"))
    append(log, make_record("t3", session="c"))
    want(log, 2)  # the same request, written again by a publisher that crashed
    append(log, make_record("t4", session="d"))

    await scored(log)

    assert asked(log) == ["a", "b"]


async def test_a_later_request_replaces_the_earlier_one() -> None:
    log = scored_log()
    want(log, 40)
    want(log, 0, number=2)
    append(log, make_record("t1", session="a"))

    await scored(log)

    assert asked(log) == []


async def test_signals_say_by_what_their_session_was_chosen() -> None:
    log = scored_log()
    append(log, make_record("t0", session="left out"))
    want(log, 1)
    traces = {name: make_record(f"t-{name}", session=name) for name in ("even", "a")}
    for each in traces.values():
        append(log, each)
    await scored(log)
    for name, each in traces.items():
        append_bytes(log, session_key("bot", name), encode(verdict_of(each)))
    await scored(log)

    found = {
        each.session_id: (each.outcome, each.sample, each.sample_probability)
        for each in signals(log)
        if each.method == "llm_judge"
    }

    assert found == {
        "left out": ("skipped", "base", 1.0),  # the probability of the fake's sample
        "even": ("scored", "base", 1.0),
        "a": ("scored", "more", 1.0),
    }
