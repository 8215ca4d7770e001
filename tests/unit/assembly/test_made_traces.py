"""Turns of agents that speak in logs: when they close, and what a restart makes of what was placed again."""

import asyncio

import pytest

from collector.assembly.owner import MOST_LOOKS, Owner, alone
from collector.otlp.segment import Segment
from collector.otlp.split_logs import split_logs
from collector.records.closings import TurnFacts
from tests.support.assembling import Site
from tests.support.codex_events import ASIDE, Happened, sent, span_id, turns

P1 = Happened(1, "prompt", text="first")
W1 = Happened(2, "work", text="of the first")
P2 = Happened(4, "prompt", text="second")
W2 = Happened(5, "work", text="of the second")


def send(site: Site, time: float, *events: Happened) -> None:
    site.clock.now = time
    site.receive(split_logs(sent(*events), max_item=1 << 20, joined=1 << 20))


def closed(site: Site) -> list[str | None]:
    return [each.trace.closed for each in site.traces()]


@pytest.mark.parametrize("by_ref", [False, True])
def test_what_was_moved_to_an_open_turn_is_there_after_the_turn_it_came_from_has_closed(
    by_ref: bool,
) -> None:
    site = Site(by_ref=by_ref)
    for each in (P1, W2, P2, W1):  # W2 belongs to P1 until P2 comes
        send(site, 100, each)
    asyncio.run(site.once(107))
    assert set(site.spans_by_trace()) == set(turns([P1, W1])), "the first has closed"

    asyncio.run(site.once(1000))  # a new process, which reads W2 again before P2

    assert site.spans_by_trace() == turns([P1, W1, P2, W2])


@pytest.mark.parametrize("drains", [False, True])
def test_what_was_moved_too_often_is_where_it_belongs_when_its_turn_is_due(drains: bool) -> None:
    """Twice as many prompts come as a segment is looked at for, each of them before the work and after the last."""
    prompts = [Happened(at, "prompt", text=f"{at}") for at in range(1, 2 * MOST_LOOKS)]
    work = Happened(2 * MOST_LOOKS, "work", text="of the last")
    site = Site()
    send(site, 100, work)
    for each in prompts:
        send(site, 100, each)

    asyncio.run(site.drained() if drains else site.once(1000))

    assert site.spans_by_trace() == turns([*prompts, work])


def test_a_turn_closes_by_the_next_prompt_of_its_session_and_the_last_one_by_quiet() -> None:
    site = Site()
    send(site, 100, P1, W1)
    send(site, 200, P2, W2)
    asyncio.run(site.once(206.5))
    assert closed(site) == ["root_ended"]

    asyncio.run(site.once(501))
    assert closed(site) == ["root_ended", "idle"]


def test_a_turn_closes_by_the_event_that_ends_it() -> None:
    site = Site()
    send(site, 100, P1, W1, Happened(3, "end"))
    asyncio.run(site.once(105.9))
    assert closed(site) == []

    asyncio.run(site.once(106.1))
    assert closed(site) == ["root_ended"]


def test_another_persons_prompt_ends_no_turn() -> None:
    site = Site()
    send(site, 100, P1, W1)
    send(site, 101, Happened(4, "prompt", 2, "elsewhere"))
    asyncio.run(site.once(108))

    assert closed(site) == []


def test_an_event_that_comes_after_its_turn_has_closed_revises_it() -> None:
    site = Site()
    send(site, 100, P1, Happened(3, "end"))
    asyncio.run(site.once(107))
    send(site, 110, W1)
    asyncio.run(site.once(1000))

    (trace_id,) = turns([P1])
    assert site.spans_by_trace()[trace_id] >= {span_id(P1), span_id(W1)}
    assert [each.revision for each in site.traces()] == [0, 1]


def test_events_before_any_prompt_are_a_trace_of_their_own() -> None:
    site = Site()
    send(site, 100, W1, W2)
    asyncio.run(site.once(1000))

    (spans,) = site.spans_by_trace().values()
    assert spans == {span_id(W1), span_id(W2)}


def test_the_answer_of_a_title_ends_no_turn() -> None:
    """A title is asked for beside the first prompt, and is there within a second."""
    site = Site()
    send(site, 100, P1, Happened(2, "title", ASIDE, "x"))
    send(site, 101, Happened(3, "end", ASIDE), W1)
    asyncio.run(site.once(110))

    assert closed(site) == []


def test_that_a_session_has_no_prompts_outlives_the_turn_it_was_asked_in() -> None:
    title, work = Happened(2, "title", ASIDE, "x"), Happened(5, "work", ASIDE, "y")
    site = Site()
    send(site, 100, P1, title)
    send(site, 101, P2)
    asyncio.run(site.once(110))
    assert closed(site) == ["root_ended"]

    send(site, 120, work)
    asyncio.run(site.once(1000))  # a new process

    assert site.spans_by_trace() == turns([P1, title, P2, work])


def test_a_session_without_prompts_is_forgotten_with_its_turns() -> None:
    owner, session = bytes(16), b"t" * 8
    facts = TurnFacts(owner=owner, asides=(session,))
    known = Owner()
    known.close(b"1" * 16, facts)
    known.close(b"2" * 16, facts)
    aside = Segment(owner=owner, session=session, start=9)
    known.learn(Segment(owner=owner, session=b"p" * 8, start=1, turn=b"3" * 16, is_prompt=True))

    known.forget(b"1" * 16)
    assert known.resolve(aside) == b"3" * 16
    known.forget(b"2" * 16)
    assert known.resolve(aside) == alone(aside)
