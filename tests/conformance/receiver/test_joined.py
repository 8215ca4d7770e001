"""What the log gets of a request where it takes joined records."""

from collector.otlp.scan import scan
from collector.otlp.split import split_by_trace
from tests.support.otlp import body, span, trace_id
from tests.support.receiving import export, serving

LARGE = 1 << 20


async def test_a_request_of_several_traces_is_one_record() -> None:
    sent = body(span(1, 1), span(2, 2), span(1, 3))
    async with serving(joined=LARGE) as served:
        await export(served.target, sent)

    (record,) = served.log.written
    pieces = split_by_trace(sent, max_item=LARGE).pieces
    assert record.value == b"".join(each.value for each in pieces)
    assert list(scan(record.value).traces) == [trace_id(1), trace_id(2)]


async def test_a_request_of_one_trace_is_its_own_record() -> None:
    sent = body(span(1, 1), span(1, 2))
    async with serving(joined=LARGE) as served:
        await export(served.target, sent)

    assert [each.value for each in served.log.written] == [sent]
