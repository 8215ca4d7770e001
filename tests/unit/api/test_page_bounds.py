"""A page is bounded whatever a trace holds, what it leaves out is said, and nothing ordinary is cut."""

import re
import threading
from html import unescape

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.api.families import ApiFamilies
from collector.api.off_loop import OffLoop
from collector.api.page.sheet import NAME, PAGE, SHOWN, Sheet
from collector.api.query import Query
from collector.api.traces import Traces
from collector.records.codec import encode
from collector.records.traces import TraceRecord
from evaluators.model import AgentStep, ToolCall, Trace
from tests.support import api_records as make
from tests.support.api_stand import Stand, filled, trace_signals

QUOTE = "'"
"""It takes five bytes on a page."""
LARGEST = PAGE + (256 << 10)
"""With the frame of the page and the words that say what is left out."""
CUT = re.compile(r"more characters|not shown|left out|more services|\u2026")


def record(of: Trace, *spans: Span) -> bytes:
    """A record of `traces` with these spans."""
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(spans)
    pieces = (request.SerializeToString(),)
    return encode(TraceRecord(trace=of, spans=pieces, revision=0, seen=make.START))


def span(number: int, *attributes: tuple[str, str], name: str = "step", events: int = 0) -> Span:
    made = Span(
        trace_id=bytes(15) + b"\x01",
        span_id=number.to_bytes(8, "big"),
        name=name,
        start_time_unix_nano=int(make.START * 1e9) + number,
        end_time_unix_nano=int(make.START * 1e9) + number + 10,
    )
    for key, value in attributes:
        made.attributes.add(key=key).value.string_value = value
    for _ in range(events):
        made.events.add(name=QUOTE * 3_000)
    return made


HOSTILE = {
    "texts": [span(n, ("q", QUOTE * 20_000)) for n in range(1, 500)],
    "names": [span(n, name=QUOTE * 20_000) for n in range(1, 500)],
    "keys": [span(n, (QUOTE * 20_000, "x")) for n in range(1, 500)],
    "attributes": [span(1, *((f"k{n}", "") for n in range(100_000)))],
    "events": [span(1, events=2_000)],
    "spans": [span(n) for n in range(1, 20_000)],
}


@pytest.mark.parametrize("shape", HOSTILE)
async def test_a_page_of_spans_is_bounded_and_says_what_it_leaves_out(
    stand: Stand, shape: str
) -> None:
    of = make.trace(1)
    stand.take_traces(record(of, *HOSTILE[shape]))

    page = await stand.text(f"/trace?id={of.trace_id}")

    assert len(page.encode()) <= LARGEST
    assert f"/api/v1/traces/{of.trace_id}" in page
    assert CUT.search(page)


async def test_long_texts_leave_no_span_out_of_the_tree(stand: Stand) -> None:
    stand.take_traces(record(make.trace(1), *HOSTILE["texts"][:399]))

    page = await stand.text(f"/trace?id={1:032x}")

    assert page.count("<details") == 399
    assert f"<dd>{'&#39;' * SHOWN} \u2026" in page
    assert "1 more are left out here" in page


async def test_a_page_of_tool_calls_and_texts_is_bounded(stand: Stand) -> None:
    long = QUOTE * 100_000
    some = long[:10_000]
    call = ToolCall(name=some, id="c", arguments={"q": some}, result=some, span_id="1" * 16)
    of = make.trace(
        **dict.fromkeys(("session_id", "agent", "agent_version", "input", "output", "error"), long),
        status="error",
        models=(some,) * 20,
        tool_calls=(call,) * 500,
        steps=(AgentStep(span_id="1" * 16, agent="a" * 500, output=some),) * 100,
    )
    stand.take_traces(record(of, span(1)))
    stand.take_signals(
        *(make.signal(of, f"{n}{long[:300]}", explanation=long[:60_000]) for n in range(100))
    )

    for path in (f"/trace?id={of.trace_id}", "/"):
        page = await stand.text(path)
        assert len(page.encode()) <= LARGEST
        assert CUT.search(page)


async def test_a_session_page_is_bounded_and_keeps_the_newest_traces(stand: Stand) -> None:
    long, count = QUOTE * 100_000, 180
    traces = [make.trace(n, input=long, output=long, error=long) for n in range(1, count + 1)]
    stand.take_traces(*traces)
    for each in traces:
        stand.take_signals(*trace_signals(each, [(f"e{n}", 0.1) for n in range(10)]))

    page = await stand.text("/session?id=s-1")

    assert len(page.encode()) <= LARGEST
    assert len(page_of(page)) < 50
    assert await walked(stand, page) == list(range(1, count + 1))


def page_of(page: str) -> list[int]:
    """The numbers of the traces on a page."""
    return [int(number) for number in re.findall(r">Trace (\d+)</a>", page)]


async def walked(stand: Stand, page: str) -> list[int]:
    """The numbers of the traces on this page and on all that its links to earlier ones lead to."""
    numbers = page_of(page)
    while earlier := re.search(r'<a rel="prev" href="([^"#]+)', page):
        page = await stand.text(unescape(earlier[1]))
        numbers = page_of(page) + numbers
    return numbers


async def test_a_session_page_reads_no_more_traces_than_it_shows_and_of_one_service_alone(
    stand: Stand,
) -> None:
    shared = [make.trace(n, service=f"service-{n}", session_id="same") for n in (11, 12, 13)]
    stand.take_traces(*map(make.trace, range(1, 9)), *shared)
    query = Query(stand.api._index)

    def part(session: str, service: str | None = None, before: int = 0) -> tuple[list[int], int]:
        place = {"before": make.trace(before).trace_id} if before else {}
        found = query.session_part(session, service, most=3, **place)
        assert found is not None
        traces = [int(each.entry.header.trace_id, 16) for each in found.shown.traces]
        return traces, len(found.others) if session == "same" else found.earlier

    assert part("s-1") == ([6, 7, 8], 5)
    assert part("s-1", before=2) == ([1], 0)
    assert part("s-1", before=99) == ([6, 7, 8], 5), "no such trace"
    assert part("same") == ([11], 2)
    assert part("same", "service-12", before=11) == ([12], 0)


async def test_a_session_of_a_thousand_traces_has_pages(stand: Stand) -> None:
    stand.take_traces(*map(make.trace, range(1, 1_001)))

    newest = await stand.text("/session?id=s-1")
    earlier = await stand.text(f"/session?id=s-1&before={make.trace(951).trace_id}")

    assert page_of(newest) == list(range(951, 1_001))
    assert "951 to 1,000 of 1,000" in newest
    assert ">Newest traces</a>" not in newest
    assert page_of(earlier) == list(range(901, 951))
    assert ">Newest traces</a>" in earlier
    assert await walked(stand, newest) == list(range(1, 1_001))


async def test_a_trace_leads_to_the_page_of_its_session_that_shows_it(stand: Stand) -> None:
    traces = [make.trace(n) for n in range(1, 121)]
    stand.take_traces(*traces)

    for number, shown in ((10, range(1, 11)), (70, range(21, 71)), (71, range(71, 121))):
        trace = await stand.text(f"/trace?id={traces[number - 1].trace_id}")
        (address,) = re.findall(r'href="(/session\?[^"]+)"', trace)
        session = await stand.text(unescape(address))

        assert page_of(session) == list(shown), number


async def test_nothing_ordinary_is_cut(stand: Stand) -> None:
    """Texts of the length that an index keeps, 300 spans, 50 tool calls, a step of an agent."""
    text = ("What is the weather in Oslo, & will it rain? " * 60)[:SHOWN]
    call = ToolCall(name="lookup", id="c", arguments={"q": text[:1_900]}, result=text)
    step = AgentStep(span_id="1" * 16, agent="WebSurfer", output="It says 42.")
    given = {"input": text, "output": text, "tool_calls": (call,) * 50, "steps": (step,)}
    of = make.trace(7, session_id="s-7", **given)
    stand.take_traces(record(of, *(span(n, ("q", text), ("r", "short")) for n in range(1, 300))))
    stand.take_signals(*trace_signals(of, [("step_efficiency", 0.3), ("coherence", 0.9)]))
    filled(stand)

    page = ""
    for path in ("/", "/session?id=s-1", "/session?id=s-7", f"/trace?id={of.trace_id}"):
        page = await stand.text(path)
        assert not CUT.search(page.partition("<main")[2]), path
    for shown in ('<li class="line agent"', "<b>WebSurfer</b>", "It says 42."):
        assert shown in page


def test_what_is_cut_of_a_text_is_counted_with_the_address_of_the_whole() -> None:
    sheet = Sheet("/api/v1/traces/ab", room=SHOWN + 10)

    assert sheet.text("x" * (SHOWN + 1_234)) == (
        "x" * SHOWN + " \u2026 1,234 more characters; the whole in /api/v1/traces/ab"
    )
    assert sheet.text("<<<") == "3 characters are not shown; the whole in /api/v1/traces/ab"
    assert sheet.text("0123456789") == "0123456789"
    assert sheet.left == 0
    assert sheet.text(None) == ""
    assert len(sheet.name("n" * 500)) == NAME + 1


async def test_what_is_made_of_a_trace_is_made_away_from_the_event_loop(stand: Stand) -> None:
    """Pages and answers are the `then` of `find`, and the work of `run`."""
    stand.take_traces(make.trace(1))
    off_loop = OffLoop(ApiFamilies(stand.telemetry))
    query, here = Query(stand.api._index), threading.get_ident()
    traces = Traces(log=stand.log, query=query, off_loop=off_loop, content=True)

    assert await traces.find(f"{1:032x}", lambda _: threading.get_ident()) != here
    assert await off_loop.run(threading.get_ident) != here
