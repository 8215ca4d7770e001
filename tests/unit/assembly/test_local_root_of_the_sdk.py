"""An agent behind a traced web server whose spans go elsewhere, as the OpenTelemetry SDK exports it."""

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from tests.support.assembling import Site
from tests.support.open_traces_driver import OpenTracesDriver


def exported(*, is_remote: bool, **marks: bool) -> list[bytes]:
    """Requests of one span each, in the order in which the spans ended."""
    attributes = {f"langfuse.internal.{name}": value for name, value in marks.items()}
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    server = SpanContext(0xABC, 0xDEF, is_remote=is_remote, trace_flags=TraceFlags(1))
    context = trace.set_span_in_context(NonRecordingSpan(server))
    with tracer.start_as_current_span("invoke_agent", context=context, attributes=attributes):
        with tracer.start_as_current_span("chat"):
            pass
        with tracer.start_as_current_span("execute_tool"):
            pass
    provider.shutdown()
    return [encode_spans([span]).SerializeToString() for span in exporter.get_finished_spans()]


def test_a_remote_parent_that_never_comes_makes_a_local_root() -> None:
    driver = OpenTracesDriver()
    for time, value in enumerate(exported(is_remote=True), 100):
        driver.send(time, value)

    assert driver.open_traces.tick(131.9).closings == []
    (closing,) = driver.open_traces.tick(132).closings
    assert (closing.reason, closing.root, closing.spans) == ("root_ended", "local", 3)


def test_a_parent_of_the_same_process_is_awaited() -> None:
    driver = OpenTracesDriver()
    for time, value in enumerate(exported(is_remote=False), 100):
        driver.send(time, value)

    assert [each.reason for each in driver.open_traces.tick(1000).closings] == ["idle"]


@pytest.mark.parametrize("mark", ["as_root", "is_app_root"])
@pytest.mark.parametrize("is_remote", [False, True])
def test_a_span_that_its_sdk_marks_as_the_root_is_the_root(mark: str, is_remote: bool) -> None:
    """Its trace waited for the parent until it was idle: for five minutes."""
    driver = OpenTracesDriver()
    for time, value in enumerate(exported(is_remote=is_remote, **{mark: True}), 100):
        driver.send(time, value)

    assert driver.open_traces.tick(107.9).closings == []
    (closing,) = driver.open_traces.tick(108).closings
    assert (closing.reason, closing.root, closing.spans) == ("root_ended", "parentless", 3)


def test_a_mark_that_says_no_is_none() -> None:
    driver = OpenTracesDriver()
    for time, value in enumerate(exported(is_remote=False, as_root=False), 100):
        driver.send(time, value)

    assert [each.reason for each in driver.open_traces.tick(1000).closings] == ["idle"]


async def test_its_mark_says_that_the_root_was_local() -> None:
    site = Site()
    for value in exported(is_remote=True):
        site.log.append("spans", value)

    await site.once(130)

    (mark,) = site.marks()
    assert (mark.local_root, mark.rootless) == (True, False)
