"""The smallest agent that Spanwise scores: one question, one tool, one answer, each a span of the OpenTelemetry SDK."""

import json

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

trace.set_tracer_provider(provider := TracerProvider())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(insecure=True)))
tracer = trace.get_tracer("my-agent")
TURN = [
    {"role": "user", "parts": [{"type": "text", "content": "Where is order 17?"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "tool_call", "id": "1", "name": "find_order", "arguments": {"order": "17"}}
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "shipped"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Order 17 has shipped."}]},
]
MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "find_order"}]),
}
with tracer.start_as_current_span(
    "invoke_agent helper",
    attributes={
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.agent.version": "1.0",
        "gen_ai.conversation.id": "chat-1",
    },
):
    tracer.start_span(
        "chat gpt-4o-mini",
        attributes={
            **MODEL,
            "gen_ai.input.messages": json.dumps(TURN[:1]),
            "gen_ai.output.messages": json.dumps(TURN[1:2]),
            "gen_ai.usage.input_tokens": 82,
            "gen_ai.usage.output_tokens": 17,
        },
    ).end()
    tracer.start_span(
        "execute_tool find_order",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find_order",
            "gen_ai.tool.call.id": "1",
            "gen_ai.tool.call.arguments": json.dumps({"order": "17"}),
            "gen_ai.tool.call.result": "shipped",
        },
    ).end()
    tracer.start_span(
        "chat gpt-4o-mini",
        attributes={
            **MODEL,
            "gen_ai.input.messages": json.dumps(TURN[:3]),
            "gen_ai.output.messages": json.dumps(TURN[3:]),
            "gen_ai.usage.input_tokens": 105,
            "gen_ai.usage.output_tokens": 9,
        },
    ).end()
