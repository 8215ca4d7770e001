"""An agent behind a traced web server whose spans go elsewhere, as the OpenTelemetry SDK exports it."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from tests.support.assembling import Site
from tests.support.open_traces_driver import OpenTracesDriver
from tests.support.table import for_each


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


@for_each(
    "is_remote,marks,due,reason,root",
    [
        (True, {}, 132, "root_ended", "local"),
        (False, {}, 402, "idle", "missing"),
        (False, {"as_root": False}, 402, "idle", "missing"),
        # Such a trace waited for the parent until it was idle: for five minutes.
        (False, {"as_root": True}, 108, "root_ended", "parentless"),
        (False, {"is_app_root": True}, 108, "root_ended", "parentless"),
        (True, {"as_root": True}, 108, "root_ended", "parentless"),
    ],
)
def test_the_root_of_a_trace_whose_parent_never_comes(
    is_remote: bool, marks: dict[str, bool], due: float, reason: str, root: str
) -> None:
    """Of a remote parent the earliest span, of a local one none, unless the SDK marks a span as the root."""
    driver = OpenTracesDriver()
    for time, value in enumerate(exported(is_remote=is_remote, **marks), 100):
        driver.send(time, value)

    assert driver.tick(due - 0.1) == []
    (closing,) = driver.tick(due)
    assert (closing.reason, closing.root, closing.spans) == (reason, root, 3)


async def test_its_mark_says_that_the_root_was_local() -> None:
    site = Site()
    for value in exported(is_remote=True):
        site.log.append("spans", value)

    await site.once(130)

    (mark,) = site.marks()
    assert (mark.local_root, mark.rootless) == (True, False)
