"""Mastra, before 1.0 and since."""

from tests.support.conventions import tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import one_call


def test_a_mastra_error_is_read_from_its_attribute_where_the_status_has_no_words() -> None:
    error = {"error.type": "TOOL_EXECUTION_FAILED", "error.message": "no such city"}
    failed = SpanSpec(status=2, attributes=tool(**error))

    assert one_call(trace_of({}, failed)).error == "no such city"
