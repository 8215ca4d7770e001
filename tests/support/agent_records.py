"""Log records of coding agents as the spans that they come in as."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, dotted

CLAUDE = "com.anthropic.claude_code.events"
CLAUDE_SPANS = "com.anthropic.claude_code.tracing"
CODEX = "codex_otel.log_only"
GEMINI = "gemini-cli"
QWEN = "qwen-code"
_NOBODY = 1 << 32
"""Above all ids of spans: a record without a span id has a parent that is nobody's."""


def claude(id_: int, event: str, at: int, **attributes: Any) -> SpanSpec:
    """A record of Claude Code at so many milliseconds; `a__b` in a name stands for `a.b`."""
    given = {"session.id": "s-1", "prompt.id": "p-1", **dotted(**attributes)}
    return _record(id_, event, at, CLAUDE, given)


def claude_span(
    id_: int, kind: str, start: int, end: int, *, parent: int = 0, **attributes: Any
) -> SpanSpec:
    """A beta span of Claude Code."""
    given = {"span.type": kind, "session.id": "s-1", **dotted(**attributes)}
    return _span(id_, f"claude_code.{kind}", start, end, parent, CLAUDE_SPANS, given)


def codex(id_: int, event: str, at: int, **attributes: Any) -> SpanSpec:
    """A record of Codex at so many milliseconds."""
    given = {"conversation.id": "c-1", "model": "gpt-5.5", **dotted(**attributes)}
    return _record(id_, f"codex.{event}", at, CODEX, given)


def gemini(id_: int, event: str, at: int, *, of: int = 0, **attributes: Any) -> SpanSpec:
    """A record of Gemini CLI, with the id of span `of`."""
    given = {"session.id": "g-1", "prompt_id": "g-1", **dotted(**attributes)}
    return _record(id_, f"gemini_cli.{event}", at, GEMINI, given, of)


def gemini_span(
    id_: int, operation: str, start: int, end: int, *, parent: int = 0, **attributes: Any
) -> SpanSpec:
    """A span of Gemini CLI."""
    given = {
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": "g-1",
        "gen_ai.agent.name": "gemini-cli",
        **dotted(**attributes),
    }
    return _span(id_, operation, start, end, parent, GEMINI, given)


def qwen(id_: int, event: str, at: int, *, of: int = 0, **attributes: Any) -> SpanSpec:
    """A record of Qwen Code, with the id of span `of`."""
    given = {"session.id": "q-1", "prompt_id": "q-1########0", **dotted(**attributes)}
    return _record(id_, f"qwen-code.{event}", at, QWEN, given, of)


def qwen_span(
    id_: int, name: str, start: int, end: int, *, parent: int = 0, **attributes: Any
) -> SpanSpec:
    """A span of Qwen Code."""
    given = {"session.id": "q-1", **dotted(**attributes)}
    return _span(id_, f"qwen-code.{name}", start, end, parent, QWEN, given)


def words(
    id_: int,
    event: str,
    at: int,
    *,
    of: int,
    body: Any = None,
    scope: str = "sdk",
    **attributes: Any,
) -> SpanSpec:
    """A record of an SDK with words for span `of`."""
    given = dotted(**attributes)
    if body is not None:
        given["spanwise.log.body"] = body
    return _record(id_, event, at, scope, given, of)


def _record(
    id_: int, event: str, at: int, scope: str, attributes: dict[str, Any], of: int = 0
) -> SpanSpec:
    given = {**attributes, "spanwise.log.event": event}
    return _span(id_, event, at, at, of or _NOBODY + id_, scope, given)


def _span(
    id_: int, name: str, start: int, end: int, parent: int, scope: str, attributes: dict[str, Any]
) -> SpanSpec:
    when: dict[str, Any] = {"start": start, "end": end}
    return SpanSpec(id=id_, parent=parent, name=name, scope=scope, attributes=attributes, **when)
