"""From traces to findings: per service and stack, what lacks, whom it stops, and what to set. Pure.

A trace is examined beside the spans that it was read from (`examine`). Evaluators are stopped by content that a
recording lacks, or by the configuration (`stops`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.config.tree import Config
from evaluators.declare import Spec
from evaluators.dialects import registry
from evaluators.dialects.advise import advise
from evaluators.dialects.dialect import LACKS, Advice, Lack
from evaluators.model import Content
from evaluators.plan import Plan

_UNREAD: tuple[Lack, ...] = ("not_read", "no_content", "content_in_logs", "dropped_attributes")
_LACKS: Mapping[Content, frozenset[Lack]] = {
    "text": frozenset({*_UNREAD, "no_question", "truncated"}),
    "tool_calls": frozenset({*_UNREAD, "no_tool_arguments", "no_tool_results"}),
    "tool_definitions": frozenset({"not_read", "no_content", "no_tool_definitions"}),
    "root": frozenset({"no_root"}),
    "session": frozenset({"no_session", "scrubbed"}),
    "tokens": frozenset({"not_read", "no_tokens"}),
}
"""Why a recording may not carry a kind of content. Without any text, tool calls only tell what failed."""
Shown = Mapping[str, Any]  # a trace as `spanwise inspect` prints it
SpanShown = Mapping[str, Any]  # a span as `/api/v1/traces/{id}` shows it
_SCRUBBED = "[Scrubbed due to "
SESSION_KEYS = frozenset({"session.id", "session_id", "gen_ai.conversation.id"})
"""Where a scrubbed session id shows."""
VERSION_KEY = "gen_ai.agent.version"
LOOKED_AT = SESSION_KEYS | {VERSION_KEY}
"""The attributes of spans that are looked at."""
UNREAD = "unread"  # whether the span `is_unread`, where its content was taken out
_OF_AGENTS = re.compile(
    r"(?<!user[_-])(?<![a-z])(?:agent|llm|gen_?ai|prompt|completion|inference)"
    r"|\A(?:tool|chain|generation|embedding|retriever)\Z",
    re.IGNORECASE,
)
"""Words of spans that instrument agents or models, and how several libraries call the kinds of their spans;
`user_agent` and `user-agent` are a browser's."""
_LONGEST_WORD = 64
"""Characters of a value that may be the kind of a span; longer ones are content, and one with a slash is an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedTrace:
    """One trace: the stack that sent it, and what it lacks."""

    trace_id: str
    service: str
    session_id: str
    dialects: tuple[str, ...]
    scopes: tuple[str, ...]
    """Instrumentation scopes, with their version where it was sent: `openinference.instrumentation.dspy 0.1.48`."""
    sdks: tuple[str, ...]  # OTel SDKs: `python 1.45.2`
    is_turn: bool
    has_task: bool
    lacks: frozenset[Lack]
    unread: tuple[str, ...] = ()  # scopes of agents' or models' spans that no dialect reads


def examine(
    shown: Shown,
    spans: Sequence[SpanShown],
    *,
    content_in_logs: bool = False,
    redacted: bool = False,
) -> ExaminedTrace:
    """Examine one trace.

    Args:
        shown: As `spanwise inspect` prints it.
        spans: Empty when the log has dropped them: scopes and SDKs are then unknown.
        content_in_logs: Its messages came as log records.
        redacted: The service shows no content: what it hides counts as present.
    """
    lacks = _lacks(shown, spans, content_in_logs=content_in_logs)
    scopes = _distinct(span["scope"] for span in spans)
    unread = _distinct(
        span["scope"] for span in spans if (span[UNREAD] if UNREAD in span else is_unread(span))
    )
    if unread and (not shown["dialects"] or "no_content" in lacks):
        lacks.add("not_read")
        if unread == scopes:
            lacks.discard("no_content")
    if redacted:
        lacks -= {"no_question", "no_tool_arguments", "no_tool_results"}
    calls = shown["tool_calls"]
    is_turn = not shown["is_part"] and (
        bool(calls or shown["steps"] or shown["models"] or shown["input"] or shown["output"])
        or any(count is not None for count in shown["tokens"].values())
    )
    return ExaminedTrace(
        trace_id=shown["trace_id"],
        service=shown["service"],
        session_id=shown["session_id"],
        dialects=tuple(shown["dialects"]),
        scopes=_distinct(f"{s['scope']} {s.get('scopeVersion') or ''}".strip() for s in spans),
        sdks=_distinct(_sdk(s["resource"]) for s in spans),
        is_turn=is_turn,
        has_task=shown["task_id"] is not None,
        lacks=frozenset(lacks) if is_turn else frozenset(lacks & {"not_read"}),
        unread=unread,
    )


def is_unread(span: SpanShown) -> bool:
    attributes: Mapping[str, Any] = span["attributes"]
    events = [event["name"] or "" for event in span.get("events", ())]
    if registry.is_read(span["scope"] or "", attributes.keys(), events):
        return False
    values = (each for each in attributes.values() if isinstance(each, str) and "/" not in each)
    words = (span["scope"], span.get("name"), *attributes, *values)
    return any(_OF_AGENTS.search(each) for each in words if each and len(each) <= _LONGEST_WORD)


def says_unread(scopes: Iterable[str]) -> str:
    return f"spans of {', '.join(scopes)} are not read"


def _lacks(shown: Shown, spans: Sequence[SpanShown], *, content_in_logs: bool) -> set[Lack]:
    lacks: set[Lack] = {lack for lack in LACKS if lack in shown["gaps"]}
    calls = shown["tool_calls"]
    if calls and all(call["arguments"] is None for call in calls):
        lacks.add("no_tool_arguments")
    ended = [call for call in calls if call["error"] is None]  # failed and refused calls have none
    if ended and all(call["result"] is None for call in ended):
        lacks.add("no_tool_results")
    if shown["input"] is None and shown["output"] is not None and not shown["truncated"]:
        lacks.add("no_question")
    if shown["models"] and shown["tokens"]["input"] is None and shown["tokens"]["output"] is None:
        lacks.add("no_tokens")
    if any(span.get("droppedAttributesCount") for span in spans):
        lacks.discard("truncated")
        lacks.add("dropped_attributes")
    if content_in_logs and lacks & {"no_content", "no_tool_arguments"}:
        lacks.discard("no_content")
        lacks.add("content_in_logs")
    if shown["root"] == "local":
        lacks.add("late_root")
    if spans and not any(
        each["resource"].get("service.version") or each["attributes"].get(VERSION_KEY)
        for each in spans
    ):
        lacks.add("no_version")
    if "no_session" in lacks and any(_is_scrubbed(span) for span in spans):
        lacks.discard("no_session")
        lacks.add("scrubbed")
    return lacks


def _is_scrubbed(span: SpanShown) -> bool:
    attributes: Mapping[str, Any] = span["attributes"]
    return any(str(attributes.get(key, "")).startswith(_SCRUBBED) for key in SESSION_KEYS)


def _sdk(resource: Mapping[str, Any]) -> str:
    language = resource.get("telemetry.sdk.language", "")
    return f"{language} {resource.get('telemetry.sdk.version', '')}".strip()


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({text for text in texts if text}))


def weakened_by(lack: Lack, specs: Iterable[Spec]) -> frozenset[str]:
    return frozenset(
        spec.name for spec in specs if any(lack in _LACKS[content] for content in spec.reads)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """An evaluator that does not run at all with this configuration, and what would make it."""

    evaluator: str
    method: str
    why: str  # no_judge, no_expectations, no_embedder, no_task or off
    setting: str


def stops(specs: Iterable[Spec], config: Config) -> tuple[Stop, ...]:
    return tuple(stop for spec in specs if (stop := _stop(spec, config)) is not None)


def _stop(spec: Spec, config: Config) -> Stop | None:
    chosen = config.evaluators.get(spec.name)
    if chosen is not None and not chosen.enabled:
        why, setting = "off", f"evaluators.{spec.name}.enabled: true"
    elif (
        "judge" in spec.needs
        and config.judge.model is None
        and (chosen is None or "model" not in chosen.options)
    ):
        why, setting = "no_judge", "judge.model: <a litellm model name> (SPANWISE_JUDGE__MODEL)"
    elif "expectations" in spec.needs and config.expectations is None:
        why, setting = "no_expectations", "expectations: <file> (SPANWISE_EXPECTATIONS)"
    elif "embedder" in spec.needs and config.embedder.kind == "none":
        why, setting = "no_embedder", "embedder.kind: wordllama (SPANWISE_EMBEDDER__KIND)"
    elif not spec.on and chosen is None:
        why, setting = "off", f"evaluators.{spec.name}.enabled: true"
    else:
        return None
    return Stop(evaluator=spec.name, method=spec.method, why=why, setting=setting)


def without_tasks(traces: Iterable[ExaminedTrace]) -> tuple[Stop, ...]:
    """pass@k and pass^k need task runs: sessions whose spans name their task."""
    turns = [each for each in traces if each.is_turn]
    if not turns or any(each.has_task for each in turns):
        return ()
    setting = 'span.set_attribute("spanwise.task.id", "...") on a span of each run'
    return (Stop(evaluator="task pass@k", method="formula", why="no_task", setting=setting),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    lack: Lack
    says: str | None  # `not_read` in words, with the scopes
    traces: int  # how many of the stack's turns lack it; of its traces, for `not_read`
    stops: tuple[str, ...]  # evaluators that cannot say all they could on those traces
    example: str  # a trace id
    advice: tuple[Advice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Traces of one service that speak the same dialects."""

    service: str
    dialects: tuple[str, ...]
    scopes: tuple[str, ...]
    sdks: tuple[str, ...]
    traces: int
    turns: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    stacks: tuple[Stack, ...]
    stops: tuple[Stop, ...]
    """Evaluators that the configuration or the spans keep from running at all, whatever the stack."""


def diagnose(traces: Iterable[ExaminedTrace], *, plan: Plan, stops: Sequence[Stop]) -> Diagnosis:
    """What is missing in these traces, for the evaluators of `plan`."""
    stacks: dict[tuple[str, tuple[str, ...]], list[ExaminedTrace]] = {}
    for each in traces:
        stacks.setdefault((each.service, each.dialects), []).append(each)
    specs = tuple(c.spec for c in plan)
    made = [
        _stack(service, dialects, found, specs) for (service, dialects), found in stacks.items()
    ]
    return Diagnosis(
        stacks=tuple(sorted(made, key=lambda stack: (stack.service, stack.dialects))),
        stops=tuple(stops),
    )


def _stack(
    service: str, dialects: tuple[str, ...], found: Sequence[ExaminedTrace], specs: Sequence[Spec]
) -> Stack:
    scopes = _distinct(scope for each in found for scope in each.scopes)
    sdks = _distinct(sdk for each in found for sdk in each.sdks)
    by_lack: Mapping[Lack, list[ExaminedTrace]] = {
        lack: [each for each in found if lack in each.lacks] for lack in LACKS
    }
    return Stack(
        service=service,
        dialects=dialects,
        scopes=scopes,
        sdks=sdks,
        traces=len(found),
        turns=sum(each.is_turn for each in found),
        findings=tuple(
            Finding(
                lack=lack,
                says=says_unread(_distinct(scope for each in lacking for scope in each.unread))
                if lack == "not_read"
                else None,
                traces=len(lacking),
                stops=tuple(sorted(weakened_by(lack, specs))),
                example=lacking[0].trace_id,
                advice=advise(lack, scopes=scopes, dialects=dialects, sdks=sdks),
            )
            for lack, lacking in by_lack.items()
            if lacking
        ),
    )
