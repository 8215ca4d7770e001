"""An agent that has had two turns, exported by OpenTelemetry's SDK: what the evaluators score."""

import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

TURN = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": "desk",
    "session.id": "chat-7",
    "input.value": "Capital of France?",
    "output.value": "Paris",
}
URL = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")
turns: list[trace.SpanContext] = []
for _ in range(2):
    with tracer.start_as_current_span("invoke_agent desk", attributes=TURN) as span:
        turns.append(span.get_span_context())
trace_ids = [format(each.trace_id, "032x") for each in turns]
