"""One trace as the doctor sees it: the normalised trace beside the spans it was read from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.dialects.dialect import LACKS, Lack

Shown = Mapping[str, Any]
"""A trace as `spanwise inspect` prints it."""
SpanShown = Mapping[str, Any]
"""A span as `/api/v1/traces/{id}` shows it."""
_SCRUBBED = "[Scrubbed due to "
SESSION_KEYS = frozenset({"session.id", "session_id", "gen_ai.conversation.id"})
"""Where a scrubbed session id shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedTrace:
    """One trace: the stack that sent it, and what it lacks."""

    trace_id: str
    service: str
    dialects: tuple[str, ...]
    scopes: tuple[str, ...]
    """Instrumentation scopes, with their version where it was sent: `openinference.instrumentation.dspy 0.1.48`."""
    sdks: tuple[str, ...]
    """OTel SDKs: `python 1.45.2`."""
    is_turn: bool
    has_task: bool
    lacks: frozenset[Lack]


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
    if redacted:
        lacks.discard("no_tool_arguments")
    calls = shown["tool_calls"]
    is_turn = bool(calls or shown["models"] or shown["input"] or shown["output"]) or any(
        count is not None for count in shown["tokens"].values()
    )
    return ExaminedTrace(
        trace_id=shown["trace_id"],
        service=shown["service"],
        dialects=tuple(shown["dialects"]),
        scopes=_distinct(f"{s['scope']} {s.get('scopeVersion') or ''}".strip() for s in spans),
        sdks=_distinct(_sdk(s["resource"]) for s in spans),
        is_turn=is_turn,
        has_task=shown["task_id"] is not None,
        lacks=frozenset(lacks) if is_turn else frozenset(),
    )


def _lacks(shown: Shown, spans: Sequence[SpanShown], *, content_in_logs: bool) -> set[Lack]:
    lacks: set[Lack] = {lack for lack in LACKS if lack in shown["gaps"]}
    calls = shown["tool_calls"]
    if calls and all(call["arguments"] is None for call in calls):
        lacks.add("no_tool_arguments")
    if shown["models"] and shown["tokens"]["input"] is None and shown["tokens"]["output"] is None:
        lacks.add("no_tokens")
    if any(span.get("droppedAttributesCount") for span in spans):
        lacks.discard("truncated")
        lacks.add("dropped_attributes")
    if content_in_logs and lacks & {"no_content", "no_tool_arguments"}:
        lacks.discard("no_content")
        lacks.add("content_in_logs")
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
