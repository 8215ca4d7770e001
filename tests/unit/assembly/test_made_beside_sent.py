"""Claude's spans in a trace of its caller: they go to the turns of their records, and what is the caller's stays."""

import asyncio

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.split_logs import split_logs, split_traces
from evaluators.dialects.turns.place import turn_trace_id
from tests.support.assembling import Site
from tests.support.reading import ReadingWorkers
from tests.support.spans import Made, child, request, root, span_id, trace_id
from tests.support.table import for_each

MS = 1_000_000
SERVICE = "shop"
CALLER = root(1)
WORK, AGAIN = 20, 21


TURN = 30
"""The span of a turn."""


def claude_spans(*spans: Made) -> bytes:
    """Its beta spans, in session "s"."""
    message = ExportTraceServiceRequest.FromString(request(*spans))
    (scope,) = message.resource_spans[0].scope_spans
    scope.scope.name = "com.anthropic.claude_code.tracing"
    for span in scope.spans:
        if span.span_id == span_id(TURN):
            span.name = "claude_code.interaction"
        span.attributes.add(key="session.id").value.string_value = "s"
    return message.SerializeToString()


def prompt(turn: str, at: int) -> bytes:
    """The record of a prompt at so many milliseconds, under the span of the caller."""
    message = ExportLogsServiceRequest()
    group = message.resource_logs.add()
    group.resource.attributes.add(key="service.name").value.string_value = SERVICE
    scope = group.scope_logs.add()
    scope.scope.name = "com.anthropic.claude_code.events"
    record = scope.log_records.add(
        time_unix_nano=at * MS, trace_id=trace_id(1), span_id=span_id(CALLER.span)
    )
    fields = {"event.name": "user_prompt", "session.id": "s", "prompt.id": turn, "prompt": turn}
    for key, value in fields.items():
        record.attributes.add(key=key).value.string_value = value
    return message.SerializeToString()


def names(site: Site) -> list[tuple[str, int]]:
    """Of each trace record: its trace id, and how many spans it has."""
    return [(each.trace.trace_id, each.trace.spans) for each in site.traces()]


def arrive(site: Site, request: bytes, *, logs: bool) -> None:
    split = split_logs if logs else split_traces
    site.receive(split(request, max_item=1 << 20, joined=1 << 20))


def test_spans_of_others_stay_in_the_trace_that_an_agents_spans_are_taken_out_of() -> None:
    site = Site()
    site.send(100, child(2))
    arrive(site, claude_spans(Made(span=WORK, parent=1, start=50 * MS)), logs=False)
    site.send(100, CALLER)
    arrive(site, prompt("p", 60), logs=True)
    asyncio.run(site.once(1000))

    found = site.spans_by_trace()
    assert found[trace_id(1)] == {span_id(CALLER.span), span_id(2)}
    assert span_id(WORK) in found[turn_trace_id(SERVICE, "s", "p")]


@pytest.mark.parametrize("records_first", [False, True])
def test_prompts_under_one_span_of_their_caller_have_their_own_spans(records_first: bool) -> None:
    """The span around a turn begins some time before the record of its prompt."""
    site = Site()
    spans = [
        claude_spans(Made(span=WORK, parent=1, start=900 * MS)),
        claude_spans(Made(span=AGAIN, parent=1, start=4_900 * MS)),
    ]
    records = [prompt("p1", 1_000), prompt("p2", 5_000)]
    arriving = [*((each, True) for each in records), *((each, False) for each in spans)]
    for each, logs in arriving if records_first else reversed(arriving):
        arrive(site, each, logs=logs)
    asyncio.run(site.once(1000))

    found = site.spans_by_trace()
    assert span_id(WORK) in found[turn_trace_id(SERVICE, "s", "p1")]
    assert span_id(AGAIN) in found[turn_trace_id(SERVICE, "s", "p2")]


def test_spans_of_which_no_record_comes_are_a_trace_of_their_own() -> None:
    site = Site()
    site.send(100, CALLER)
    arrive(site, claude_spans(Made(span=WORK, parent=1), Made(span=AGAIN, parent=WORK)), logs=False)
    asyncio.run(site.once(1000))

    found = site.spans_by_trace()
    assert found.pop(trace_id(1)) == {span_id(CALLER.span)}
    assert list(found.values()) == [{span_id(WORK), span_id(AGAIN)}]


def test_a_span_of_an_agent_without_a_valid_id_is_rejected_alone() -> None:
    message = ExportTraceServiceRequest.FromString(
        claude_spans(Made(span=WORK, parent=1), Made(span=AGAIN, parent=1))
    )
    message.resource_spans[0].scope_spans[0].spans[1].trace_id = b"short"

    split = split_traces(message.SerializeToString(), max_item=1 << 20, joined=1 << 20)

    assert (split.accepted, split.rejected) == (1, 1)


# --- the id by which a turn goes -------------------------------------------------------------------------------------

SENT, MADE = trace_id(1).hex(), turn_trace_id(SERVICE, "s", "p").hex()
ITS_TURN = claude_spans(Made(span=TURN, start=50 * MS))
ITS_WORK = claude_spans(Made(span=WORK, parent=TURN, start=55 * MS))


@pytest.mark.parametrize("records_first", [False, True])
def test_a_turn_goes_by_the_id_of_the_trace_that_it_was_sent_in(records_first: bool) -> None:
    """So that the user's backend, the page and every signal name the same trace."""
    site = Site()
    arriving = [(prompt("p", 60), True), (ITS_WORK, False), (ITS_TURN, False)]
    for each, logs in arriving if records_first else reversed(arriving):
        arrive(site, each, logs=logs)
    asyncio.run(site.once(1000))

    assert names(site) == [(SENT, 3)]


def test_a_turn_within_a_trace_of_its_caller_does_not_take_its_id() -> None:
    site = Site()
    site.send(100, CALLER)
    arrive(site, prompt("p", 60), logs=True)
    arrive(site, claude_spans(Made(span=TURN, parent=1, start=50 * MS)), logs=False)
    asyncio.run(site.once(1000))

    assert sorted(names(site)) == sorted([(SENT, 1), (MADE, 2)])


@for_each(
    "first,late,expected",
    [
        # Its process was killed: without the root, the trace may be that of a caller.
        ([ITS_WORK], [], [(MADE, 2)]),
        ([], [ITS_TURN], [(MADE, 1), (MADE, 2)]),
        ([ITS_TURN], [ITS_WORK], [(SENT, 2), (SENT, 3)]),
    ],
)
def test_a_turn_keeps_the_id_that_it_first_closed_with(
    first: list[bytes], late: list[bytes], expected: list[tuple[str, int]]
) -> None:
    """One of ours, unless the span of the turn has come."""
    site = Site()
    arrive(site, prompt("p", 60), logs=True)
    for now, spans in ((500, first), (1500, late)):
        for each in spans:
            arrive(site, each, logs=False)
        asyncio.run(site.once(now))

    assert names(site) == expected


async def test_a_trace_reported_while_it_was_open_keeps_the_id_it_was_reported_by() -> None:
    """An alert names it: its final outcome has to clear that."""
    site = Site(workers=ReadingWorkers(suspicious=2))
    site.clock.now = 100
    arrive(site, prompt("p", 60), logs=True)
    arrive(site, ITS_WORK, logs=False)
    async with site.running():
        site.clock.now = 131
        await site.until(lambda: site.count("trace_glances_total", result="suspect") == 1)
        await site.polled()
        arrive(site, ITS_TURN, logs=False)
        site.clock.now = 1000
        await site.until(lambda: bool(site.traces()))

    assert names(site) == [(MADE, 3)]
