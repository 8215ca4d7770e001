"""What pages say of texts and scores; bounded whatever a trace holds, and nothing ordinary is cut."""

import re
import threading
from html import unescape
from typing import Any

import pytest
from markupsafe import Markup
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.api.families import ApiFamilies
from collector.api.off_loop import OffLoop
from collector.api.page.series import thousands
from collector.api.page.sheet import LONG, NAME, OPENING, PAGE, SHOWN, Sheet
from collector.api.page.signal_rows import verdict
from collector.api.page.trace_pages import talk
from collector.api.page.views import MARKED, duration, prose, standing, usd
from collector.api.query import Query
from collector.api.traces import Traces
from collector.records.codec import encode
from collector.records.traces import TraceRecord
from evaluators.dialects.reading_order import Line
from evaluators.model import AgentStep, ToolCall, Trace
from tests.support import api_records as make
from tests.support.api_stand import Stand, filled, trace_signals
from tests.support.table import for_each

SPAN = "00f067aa0ba902b7"


def test_names_become_code_and_known_spans_links_or_titles_where_the_page_has_no_spans() -> None:
    text = f"`find_order` failed, span {SPAN}; not {SPAN[::-1]} <b>"
    elsewhere = f"the step before `find_order`, span {SPAN}; not {SPAN[::-1]}"

    assert prose(text, {SPAN: 3}) == Markup(
        f'<code>find_order</code> failed, span <a href="#span-{SPAN}">3</a>; '
        f"not {SPAN[::-1]} &lt;b&gt;"
    )
    assert prose(elsewhere) == Markup(
        f'the step before <code>find_order</code> (<span title="{SPAN}">its span</span>); '
        f"not {SPAN[::-1]}"
    )


def test_prose_marks_a_bounded_number_of_names_as_text() -> None:
    assert prose("`<` " * 5_000).count("<code>") == MARKED
    assert prose("`<img src=x>`") == "<code>&lt;img src=x&gt;</code>"


def test_little_time_and_money_is_a_number_too_and_thousands_read_short() -> None:
    times = [duration(each) for each in (0.00044, 0.005, 0.34, 4.2, 185)]
    costs = [usd(each) for each in (3, 0.0042, 0.000023, 0.0000001, 0)]
    counts = [thousands(each) for each in (0, 840.4, 9_999, 12_500, 3_100_000)]

    assert times == ["0.4 ms", "5 ms", "340 ms", "4.2 s", "3 min 5 s"]
    assert costs == ["$3.00", "$0.0042", "$0.000023", "below $0.000001", "$0.00"]
    assert counts == ["0", "840", "9999", "12.5k", "3.1M"]


def rows(**scores: float) -> list[dict[str, Any]]:
    return [
        {"evaluator": name, "outcome": "scored", "success": value >= 0.5}
        for name, value in scores.items()
    ]


@for_each(
    ("reliability", "turns", "said"),
    [
        (None, [], None),
        (None, [[{"evaluator": "x", "outcome": "skipped", "success": None}]], None),
        (0.9, [rows(confidence=1.0)], "It went well. Every score passed."),
        (
            0.6,
            [rows(step_efficiency=0.1, confidence=1.0)],
            "It went unevenly. These did not pass: step efficiency.",
        ),
        (
            0.1,
            [rows(confidence=0.0, runaway=0.0), rows(confidence=0.0), rows(confidence=1.0)],
            "It went badly. In 2 of 3 traces a score did not pass: confidence (2), runaway (1).",
        ),
        (None, [rows(confidence=1.0)], "Every score passed."),
    ],
)
def test_how_a_session_went_is_said_in_words(
    reliability: float | None, turns: list[list[dict[str, Any]]], said: str | None
) -> None:
    assert verdict(reliability, turns) == said
    passed = verdict(0.9, [rows(confidence=1.0)], is_whole=False)
    assert passed == "It went well. Every score of these traces passed."
    fell = verdict(0.1, [rows(confidence=0.0), rows(confidence=1.0)], is_whole=False)
    assert fell == "It went badly. In 1 of these 2 traces a score did not pass: confidence (1)."


def test_a_long_system_prompt_leaves_the_screen_to_the_conversation() -> None:
    lines = [Line(speaker=who, text="word " * 100) for who in ("system", "user")]

    ((system, user),) = (group["rows"] for group in talk(make.trace(), lines, Sheet("/api")))

    assert (len(system["text"].opening), system["text"].size) == (200, 499)
    assert (len(user["text"].opening), user["text"].rest) == (499, "")


def test_a_long_text_has_an_opening_a_fold_and_what_is_missing() -> None:
    words, tall = "word " * 10_000, "a\n" * 60
    sheet = Sheet("/api", room=OPENING + 10)

    folded, lines = Sheet("/api/v1/traces/ab").long(words), Sheet("/api").long(tall)

    assert folded.opening.endswith("word ")
    assert OPENING - 100 < len(folded.opening) <= OPENING
    assert folded.opening + folded.rest == words[:LONG]
    assert folded.missing == f"{50_000 - LONG:,} more characters; the whole in /api/v1/traces/ab"
    assert lines.opening == ("a\n" * (OPENING // 40)).strip(), "few lines, however short"
    assert lines.opening + lines.rest == tall
    cut = f"{3_000 - OPENING:,} more characters; the whole in /api"
    assert sheet.long("x" * 3_000).missing == cut
    assert sheet.long("y" * 50).missing == "50 characters are not shown; the whole in /api"


@for_each("text", ["", None, "short", "x" * OPENING, "a\n" * 24])
def test_a_short_text_has_no_fold(text: str | None) -> None:
    folded = Sheet("/").long(text)

    assert (folded.opening, folded.rest, folded.missing) == (text or "", "", "")
    assert bool(folded) is bool(text)


@for_each(
    ("value", "success", "colour"),
    [
        (0.0, True, "fair"),  # the same answer twice is not a loop yet
        (0.8, True, "good"),
        (0.9, False, "poor"),
        (0.1, None, "unknown"),  # work_baseline neither passes nor fails
    ],
)
def test_the_colour_of_an_outcome_is_whether_it_passed(
    value: float, success: bool | None, colour: str
) -> None:
    assert standing(value, success) == colour


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
