"""The turns of agents that speak in logs: the same traces in whatever order, doubled, with whatever crashes."""

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.log.port import SPANS
from collector.otlp.split_logs import split_logs
from tests.support.assembling import Site
from tests.support.codex_events import ASIDE, Happened, Kind, sent, turns
from tests.support.examples import examples

FAR = 1e6


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, in which requests it arrives, and after which of them the process dies."""

    events: list[Happened]
    requests: list[list[Happened]]
    crashes: dict[int, int | None]
    """By the number of requests that have come: the step of the log at which it dies, None: at its end."""
    pauses: dict[int, float]
    """By the same number: how long nothing came before it."""


@st.composite
def happened(draw: st.DrawFn) -> list[Happened]:
    """Prompts of two persons, and what follows them; a helper's session begins with its link, a title's with itself."""
    at = 1
    events = [Happened(at, "prompt", text="0"), Happened(at, "prompt", 2, "0")]
    kinds = st.sampled_from(["work", "work", "work", "prompt", "end", "helped", "other", "title"])
    helped = titled = False
    for number in range(draw(st.integers(1, 10))):
        at += draw(st.integers(1, 2))
        kind = draw(kinds)
        text = f"{number}"
        match kind:
            case "helped" if not helped:
                events += [Happened(at, "link"), Happened(at + 1, "work", 1, text)]
                at, helped = at + 1, True
            case "helped":
                events.append(Happened(at, "work", 1, text))
            case "title":
                aside: Kind = draw(st.sampled_from(_ASIDE)) if titled else "title"
                events.append(Happened(at, aside, ASIDE, text))
                titled = True
            case "other":
                events.append(Happened(at, draw(st.sampled_from(_OTHERS)), 2, text))
            case "work" | "prompt" | "end":
                events.append(Happened(at, kind, text=text))
            case _:
                raise AssertionError(kind)
    return events


@st.composite
def stories(draw: st.DrawFn, *, ordered: bool) -> Story:
    events = draw(happened())
    requests: list[list[Happened]] = []
    for event in events:
        if not requests or draw(st.booleans()):
            requests.append([])
        requests[-1].append(event)
    if not ordered:
        requests = draw(st.permutations(requests))
    requests += draw(st.lists(st.sampled_from(requests), max_size=3))
    crashes = draw(
        st.dictionaries(st.integers(0, len(requests)), st.none() | st.integers(1, 30), max_size=3)
    )
    pauses = draw(
        st.dictionaries(
            st.integers(1, len(requests)), st.sampled_from([5.9, 6.1, 301.0]), max_size=2
        )
    )
    return Story(events, requests, crashes, pauses if ordered else {})


_OTHERS: list[Kind] = ["work", "prompt"]
_ASIDE: list[Kind] = ["work", "end"]


def arrived(story: Story, *, by_ref: bool) -> dict[bytes, set[bytes]]:
    """Span ids by trace, in the newest record of each."""
    site = Site(by_ref=by_ref)
    time = 100.0
    for number, request in enumerate(story.requests):
        if number in story.crashes:
            site.clock.now = time + 0.9 * story.pauses.get(number, 0)
            asyncio.run(site.live(story.crashes[number]))
        time += story.pauses.get(number, 0.05)
        site.clock.now = time
        site.receive(split_logs(sent(*request), max_item=1 << 20, joined=1 << 20))
    asyncio.run(site.once(FAR))
    assert by_ref or site.log.stored(SPANS) == [], "nothing is open: nothing is kept"
    return site.spans_by_trace()


@settings(max_examples=examples(600), deadline=None)
@given(story=stories(ordered=False) | stories(ordered=True), by_ref=st.booleans())
def test_turns_are_the_same_in_any_order_doubled_with_any_crash_and_where_they_closed_meanwhile(
    story: Story, by_ref: bool
) -> None:
    assert arrived(story, by_ref=by_ref) == turns(story.events)
