// Usage: node export.cjs grpc|proto|json URL none|gzip SPANS
// Exports SPANS spans of one trace with the real exporter and prints {"code": 0} (success) or {"code": 1, ...}.
const { context, trace, SpanKind } = require("@opentelemetry/api");
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-node");

const [protocol, url, compression, spans] = process.argv.slice(2);
const packages = { grpc: "grpc", proto: "proto", json: "http" };
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${packages[protocol]}`);

const memory = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] });
const tracer = provider.getTracer("tests");
const root = tracer.startSpan("root", { kind: SpanKind.SERVER });
const active = context.active();
for (let i = 1; i < Number(spans); i++) {
  const attributes = { "large.int": 9007199254740991, ratio: 0.5, flag: true, text: "ümläut", list: ["a", "b"] };
  tracer.startSpan(`step ${i}`, { attributes }, trace.setSpan(active, root)).end();
}
root.end();

const exporter = new OTLPTraceExporter({ url, compression, timeoutMillis: 10000 });
exporter.export(memory.getFinishedSpans(), (result) => {
  console.log(JSON.stringify({ code: result.code, error: result.error && String(result.error) }));
  exporter.shutdown();
});
