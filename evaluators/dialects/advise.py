"""Which advice fits spans that lack something: that of their dialects, else the general one."""

from collections.abc import Iterable

from evaluators.dialects import registry
from evaluators.dialects.dialect import Advice, Lack, advice_of

_GENERAL = advice_of(
    """
    no_session: span.set_attribute("session.id", "...")
        on the root span; or name your own attribute in Spanwise's attributes.session
        opentelemetry.io/docs/specs/semconv/general/session
    no_session [python]: span.set_attribute("session.id", "...")
        on the root span; or name your own attribute in Spanwise's attributes.session
        opentelemetry.io/docs/specs/semconv/general/session
    no_session [nodejs]: span.setAttribute("session.id", "...")
        on the root span; or name your own attribute in Spanwise's attributes.session
        opentelemetry.io/docs/specs/semconv/general/session
    no_session [java]: Span.current().setAttribute("session.id", "...")
        on the root span; or name your own attribute in Spanwise's attributes.session
        opentelemetry.io/docs/specs/semconv/general/session
    no_session [go]: span.SetAttributes(attribute.String("session.id", "..."))
        on the root span; or name your own attribute in Spanwise's attributes.session
        opentelemetry.io/docs/specs/semconv/general/session
    no_session [dotnet]: Activity.Current?.SetTag("session.id", "...")
        on the root span; or name your own attribute in Spanwise's attributes.session
        opentelemetry.io/docs/specs/semconv/general/session
    no_version: OTEL_RESOURCE_ATTRIBUTES=service.version=...
        or gen_ai.agent.version on the agent's spans: scores are then kept for each release
        opentelemetry.io/docs/specs/semconv/resource/service
    all_content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true
        the switch of the OTel GenAI conventions; instrumentations of your own set gen_ai.input.messages,
        gen_ai.output.messages, gen_ai.tool.call.arguments
        opentelemetry.io/docs/specs/semconv/gen-ai
    not_read: (no setting)
        no dialect knows this instrumentation: export the attributes of the OTel GenAI conventions as well
        (gen_ai.operation.name, gen_ai.input.messages, gen_ai.output.messages, gen_ai.tool.name), or use an
        instrumentation of docs/dialects.md
        opentelemetry.io/docs/specs/semconv/gen-ai
    no_tool_definitions: span.set_attribute("gen_ai.tool.definitions", json.dumps(tools))
        on the model call's span, if the instrumentation has no switch for it
        opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans
    dropped_attributes: OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=4096
        the SDK's default is 128, and the Python SDK evicts the oldest: the question goes first
        opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables
    truncated: unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT
        or SpanLimits(max_attribute_length=...); values are cut in the middle
        opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables
    no_root: tracer_provider.shutdown()
        before the process ends, and every service of a trace must export to the same Spanwise;
        windows.trace.root_grace must be longer than the slowest exporter's delay
        opentelemetry.io/docs/specs/otel/trace/sdk
    late_root: windows.trace.local_root_grace: 2s
        in Spanwise's configuration: the caller's span never comes, and each trace waits 30 s for it; better, let the
        caller export here, too
        opentelemetry.io/docs/specs/otel/trace/api/#isremote
    no_tokens: stream_options={"include_usage": True}
        for streamed answers of OpenAI-like APIs (LangChain: stream_usage=True)
        platform.openai.com/docs/api-reference/chat/create
    """
)


def all_advice() -> tuple[Advice, ...]:
    own = (each for dialect in registry.DIALECTS for each in dialect.own_advice())
    return (*own, *_GENERAL)


def advise(
    lack: Lack, *, scopes: Iterable[str], dialects: Iterable[str], sdks: Iterable[str] = ()
) -> tuple[Advice, ...]:
    """The settings that supply what is lacking in spans of these scopes and dialects.

    The general advice is used only where no dialect has its own, and that for any language where the SDK's has none.
    `scopes`: instrumentation scopes, each with or without its version. `sdks`: OTel SDKs, `python 1.45.2`; without any,
    advice for every language fits.
    """
    scopes, dialects, sdks = tuple(scopes), tuple(dialects), tuple(sdks)
    fitting = [a for a in all_advice() if lack in a.lacks and a.fits(scopes, dialects, sdks)]
    own = tuple(a for a in fitting if a.speakers)
    of_the_language = tuple(a for a in fitting if sdks and a.language)
    return own or of_the_language or tuple(a for a in fitting if not a.language)
