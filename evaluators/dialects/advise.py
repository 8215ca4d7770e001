"""Which advice fits spans that lack something: that of their dialects, else the general one."""

from collections.abc import Iterable

from evaluators.dialects import registry
from evaluators.dialects.dialect import ALL_CONTENT, CAPTURE, NO_SETTING, Advice, Lack

_SESSION = {
    "": 'span.set_attribute("session.id", "...")',
    "python": 'span.set_attribute("session.id", "...")',
    "nodejs": 'span.setAttribute("session.id", "...")',
    "java": 'Span.current().setAttribute("session.id", "...")',
    "go": 'span.SetAttributes(attribute.String("session.id", "..."))',
    "dotnet": 'Activity.Current?.SetTag("session.id", "...")',
}
"""By `telemetry.sdk.language`; the first one for all others."""

_GENERAL: tuple[Advice, ...] = (
    *(
        Advice(
            lacks=("no_session",),
            setting=setting,
            note="on the root span; or name your own attribute in Spanwise's attributes.session",
            source="opentelemetry.io/docs/specs/semconv/general/session",
            language=language,
        )
        for language, setting in _SESSION.items()
    ),
    Advice(
        lacks=("no_version",),
        setting="OTEL_RESOURCE_ATTRIBUTES=service.version=...",
        note="or gen_ai.agent.version on the agent's spans: scores are then kept for each release",
        source="opentelemetry.io/docs/specs/semconv/resource/service",
    ),
    Advice(
        lacks=ALL_CONTENT,
        setting=f"{CAPTURE}=true",
        note="the switch of the OTel GenAI conventions; instrumentations of your own set gen_ai.input.messages,"
        " gen_ai.output.messages, gen_ai.tool.call.arguments",
        source="opentelemetry.io/docs/specs/semconv/gen-ai",
    ),
    Advice(
        lacks=("not_read",),
        setting=NO_SETTING,
        note="no dialect knows this instrumentation: export the attributes of the OTel GenAI conventions as well"
        " (gen_ai.operation.name, gen_ai.input.messages, gen_ai.output.messages, gen_ai.tool.name), or use an"
        " instrumentation of docs/dialects.md",
        source="opentelemetry.io/docs/specs/semconv/gen-ai",
    ),
    Advice(
        lacks=("no_tool_definitions",),
        setting='span.set_attribute("gen_ai.tool.definitions", json.dumps(tools))',
        note="on the model call's span, if the instrumentation has no switch for it",
        source="opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans",
    ),
    Advice(
        lacks=("dropped_attributes",),
        setting="OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=4096",
        note="the SDK's default is 128, and the Python SDK evicts the oldest: the question goes first",
        source="opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables",
    ),
    Advice(
        lacks=("truncated",),
        setting="unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        note="or SpanLimits(max_attribute_length=...); values are cut in the middle",
        source="opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables",
    ),
    Advice(
        lacks=("no_root",),
        setting="tracer_provider.shutdown()",
        note="before the process ends, and every service of a trace must export to the same Spanwise;"
        " windows.trace.root_grace must be longer than the slowest exporter's delay",
        source="opentelemetry.io/docs/specs/otel/trace/sdk",
    ),
    Advice(
        lacks=("late_root",),
        setting="windows.trace.local_root_grace: 2s",
        note="in Spanwise's configuration: the caller's span never comes, and each trace waits 30 s for it; better, let"
        " the caller export here, too",
        source="opentelemetry.io/docs/specs/otel/trace/api/#isremote",
    ),
    Advice(
        lacks=("no_tokens",),
        setting='stream_options={"include_usage": True}',
        note="for streamed answers of OpenAI-like APIs (LangChain: stream_usage=True)",
        source="platform.openai.com/docs/api-reference/chat/create",
    ),
)


def all_advice() -> tuple[Advice, ...]:
    own = (each for dialect in registry.DIALECTS for each in dialect.own_advice())
    return (*own, *_GENERAL)


def advise(
    lack: Lack, *, scopes: Iterable[str], dialects: Iterable[str], sdks: Iterable[str] = ()
) -> tuple[Advice, ...]:
    """The settings that supply what is lacking in spans of these scopes and dialects.

    The general advice only stands in where no dialect has its own, that for any language where the SDK's has none.
    `scopes`: instrumentation scopes, each with or without its version. `sdks`: OTel SDKs, `python 1.45.2`; without any,
    advice for every language fits.
    """
    scopes, dialects, sdks = tuple(scopes), tuple(dialects), tuple(sdks)
    fitting = [a for a in all_advice() if lack in a.lacks and a.fits(scopes, dialects, sdks)]
    own = tuple(a for a in fitting if a.speakers)
    of_the_language = tuple(a for a in fitting if sdks and a.language)
    return own or of_the_language or tuple(a for a in fitting if not a.language)
