from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.util.genai.handler import get_telemetry_handler
from opentelemetry.util.genai.types import AgentInvocation, EvaluationResult

logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
handler = get_telemetry_handler(tracer_provider=provider, logger_provider=logs)
for score in (1.0, 0.0):
    agent = AgentInvocation(name="desk", conversation_id="chat-7")
    handler.start_agent(agent)
    handler.stop_agent(agent)
    said = {"gen_ai.evaluation.passed": score > 0.5}
    handler.evaluation_results(agent, [EvaluationResult("relevance", score, attributes=said)])
