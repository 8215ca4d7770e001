"""Turns of agents that speak in logs: where events belong, when turns close, and what a restart makes of them."""

import asyncio
from itertools import permutations

import pytest

from collector.assembly.owner import MOST_LOOKS, Owner
from collector.otlp.segment import Segment
from collector.otlp.split_logs import split_logs
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


OWNER, SESSION = bytes(16), bytes(8)
FIRST, SECOND = b"1" * 16, b"2" * 16


def prompt(turn: bytes, start: int) -> Segment:
    return Segment(owner=OWNER, session=SESSION, start=start, turn=turn, is_prompt=True)


def test_a_prompt_that_is_recorded_twice_began_at_its_first_record() -> None:
    """Qwen Code tells of it by a record, and by the span around the turn."""
    work = Segment(owner=OWNER, session=SESSION, start=15)
    for order in permutations([prompt(FIRST, 1), prompt(SECOND, 10), prompt(SECOND, 20)]):
        owner = Owner()
        for segment in order:
            owner.learn(segment)

        assert owner.resolve(work) == SECOND
