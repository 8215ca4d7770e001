"""What the log gets of a request where it takes joined records, and what assembly is handed of it."""

from collector.base.errors import LogUnavailable
from collector.otlp.scan import scan
from collector.otlp.split import split_by_trace
from collector.records.scan_cache import ScanCache
from tests.support.otlp import body, span, trace_id
from tests.support.receiving import export, serving

LARGE = 1 << 20


async def test_a_request_of_several_traces_is_one_record_that_is_known() -> None:
    sent, scans = body(span(1, 1), span(2, 2), span(1, 3)), ScanCache()
    async with serving(joined=LARGE, scans=scans) as served:
        await export(served.target, sent)

    (record,) = served.log.written
    pieces = split_by_trace(sent, max_item=LARGE).pieces
    assert record.value == b"".join(each.value for each in pieces)
    known = scans.take(record.position)
    assert known is not None
    assert known.traces == scan(record.value).traces
    assert list(known.traces) == [trace_id(1), trace_id(2)]


async def test_a_request_of_one_trace_is_its_own_record() -> None:
    sent = body(span(1, 1), span(1, 2))
    async with serving(joined=LARGE) as served:
        await export(served.target, sent)

    assert [each.value for each in served.log.written] == [sent]


async def test_what_was_not_written_is_not_handed_over() -> None:
    scans = ScanCache()
    async with serving(joined=LARGE, scans=scans) as served:
        served.log.write_failures = [LogUnavailable("the disk is gone")]
        await export(served.target, body(span(1, 1)))

    assert len(scans) == 0
