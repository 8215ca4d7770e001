"""The smallest agent that Spanwise scores: one question, one tool, one answer, each a span of the OpenTelemetry SDK."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

trace.set_tracer_provider(provider := TracerProvider())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(insecure=True)))
span = trace.get_tracer("my-agent").start_as_current_span
said = '[{{"role": "{}", "parts": [{{"type": "text", "content": "{}"}}]}}]'.format
with span(
    "invoke_agent helper",
    attributes={
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": "chat-1",
    },
):
    with span(
        "execute_tool find_order",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find_order",
            "gen_ai.tool.call.result": "shipped",
        },
    ):
        pass
    with span(
        "chat gpt-4o-mini",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.input.messages": said("user", "Where is order 17?"),
            "gen_ai.output.messages": said("assistant", "Order 17 has shipped."),
        },
    ):
        pass
