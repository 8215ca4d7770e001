"""Any regrouping, order or repetition of the same spans gives the same traces, hence the same signal ids."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.config.tree import TraceWindow, Windows
from collector.records.traces import TraceRecord
from evaluators.digest import trace_digest
from tests.support.assembling import Site, newest
from tests.support.examples import examples
from tests.support.spans import Made, child, remote, root, span_id, trace_id

PATIENT = Windows(
    trace=TraceWindow(root_grace=6, idle=300, max_age=3600, late=1e6, max_revisions=1000)
)


@st.composite
def sent_spans(draw: st.DrawFn) -> list[Made]:
    """A few traces: with a root, with a local root, or without any."""
    spans: list[Made] = []
    for trace in range(1, draw(st.integers(1, 4)) + 1):
        tops = [root(trace), remote(1, 99, trace=trace), child(1, 99, trace=trace)]
        top = draw(st.sampled_from(tops))
        size = draw(st.integers(0, 5))
        spans += [top, *(child(2 + each, 1, trace=trace) for each in range(size))]
    return spans


def requests(spans: list[Made], random: Random, copies: int) -> list[list[Made]]:
    """The spans and some second copies, shuffled and grouped again."""
    shuffled = spans + random.choices(spans, k=copies)
    random.shuffle(shuffled)
    grouped: list[list[Made]] = [[]]
    for span in shuffled:
        if random.random() < 0.4:
            grouped.append([])
        grouped[-1].append(span)
    return [group for group in grouped if group]


def assembled(groups: list[list[Made]], *, apart: float) -> list[TraceRecord]:
    site = Site(windows=PATIENT)
    for index, group in enumerate(groups):
        site.send(100 + apart * index, *group)
    asyncio.run(site.once(100 + apart * len(groups) + 10_000))
    return site.traces()


def digests(spans: list[Made]) -> dict[str, str]:
    traces: dict[str, list[str]] = {}
    for span in spans:
        traces.setdefault(trace_id(span.trace).hex(), []).append(span_id(span.span).hex())
    return {trace: trace_digest(ids) for trace, ids in traces.items()}


@settings(max_examples=examples(80), deadline=None)
@given(spans=sent_spans(), random=st.randoms(use_true_random=False), copies=st.integers(0, 6))
def test_within_the_grace_each_trace_closes_once_and_whole(
    spans: list[Made], random: Random, copies: int
) -> None:
    records = assembled(requests(spans, random, copies), apart=0.01)

    assert {each.revision for each in records} == {0}
    assert {each.trace.trace_id: each.trace.digest for each in records} == digests(spans)
    assert len(records) == len(digests(spans))


@settings(max_examples=examples(80), deadline=None)
@given(
    spans=sent_spans(),
    random=st.randoms(use_true_random=False),
    copies=st.integers(0, 6),
    apart=st.sampled_from([1.0, 7.0, 50.0, 310.0]),
)
def test_late_spans_lead_to_the_same_traces_in_the_end(
    spans: list[Made], random: Random, copies: int, apart: float
) -> None:
    records = assembled(requests(spans, random, copies), apart=apart)

    found = newest(records)
    assert {name: each.trace.digest for name, each in found.items()} == digests(spans)
    for name, last in found.items():
        mine = [each for each in records if each.trace.trace_id == name]
        assert [each.revision for each in mine] == list(range(last.revision + 1))
