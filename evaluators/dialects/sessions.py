"""Which session, user and task a trace belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from evaluators.dialects.decode import names_of
from evaluators.dialects.values import as_dict, is_scrubbed, unwrap
from evaluators.model import JSON, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Attribute keys of the user's own (`attributes.*` of the configuration), looked at before all others."""

    session: tuple[str, ...] = ()
    task: tuple[str, ...] = ("spanwise.task.id",)
    user: tuple[str, ...] = ()


SESSION = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.session.id",
    "traceloop.association.properties.conversation_id",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.session_id",
    "ai.telemetry.metadata.conversationId",
    "ai.telemetry.metadata.chatId",
    "gcp.vertex.agent.session_id",
    "mlflow.trace.session",
    "langsmith.metadata.session_id",
    "langsmith.metadata.conversation_id",
    "langfuse.trace.metadata.session_id",
    "langfuse.observation.metadata.langfuse_session_id",
    "langfuse.observation.metadata.session_id",
    "gen_ai.session.id",
    "gen_ai.thread.id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.threadId",
    "ai.telemetry.metadata.thread_id",
    "langsmith.metadata.thread_id",
    "langfuse.trace.metadata.thread_id",
    "langfuse.observation.metadata.thread_id",
    "metadata.session_id",
    "metadata.conversation_id",
    "metadata.thread_id",
    "session_id",
    "thread_id",
    "conversation_id",
    "litellm.trace_id",
    "group_id",
)
"""Session ids, best first. `metadata.x` is also looked for inside the JSON of `metadata`."""
USER = (
    "user.id",
    "enduser.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
    "traceloop.association.properties.user.id",
    "ai.telemetry.metadata.userId",
    "ai.telemetry.metadata.user_id",
    "gcp.vertex.agent.user_id",
    "mlflow.trace.user",
    "langsmith.metadata.user_id",
    "langfuse.trace.metadata.user_id",
    "langfuse.observation.metadata.langfuse_user_id",
    "langfuse.observation.metadata.user_id",
    "gen_ai.user.id",
    "metadata.user_id",
    "user_id",
)
ONLY_OF = {"group_id": "logfire.openai_agents"}
"""Keys that mean a session in one scope only: the Agents SDK links the turns of a conversation by a group."""
_GENERATED = ("litellm.trace_id",)
"""Keys that hold the session where the caller gave one, else a UUID of the single request: that one is no session."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LIMIT = 1_024
"""Characters; a longer id is no id."""


def find_id(
    spans: Iterable[Span], keys: Sequence[str], all_names: AbstractSet[str]
) -> tuple[str, str] | None:
    """The first span's best id as (id, key); None when no span carries one. A scrubbed id is none.

    Args:
        spans: Best first.
        keys: Best first.
        all_names: Every key of every span.
    """
    nested = "metadata" in all_names and any(key.startswith("metadata.") for key in keys)
    wanted = frozenset(keys)
    if not nested and all_names.isdisjoint(wanted):
        return None
    for span in spans:
        names = names_of(span.attributes)
        if names.isdisjoint(wanted) and not (nested and "metadata" in names):
            continue
        for key in keys:
            if (key in names or key.startswith("metadata.")) and (found := _id(span, key)):
                return found, key
    return None


def _id(span: Span, key: str) -> str | None:
    if not span.scope.startswith(ONLY_OF.get(key, "")):
        return None
    value = span.attributes.get(key)
    if value is None and key.startswith("metadata."):
        value = as_dict(unwrap(span.attributes.get("metadata"))).get(key.removeprefix("metadata."))
    found = _as_id(value)
    return None if key in _GENERATED and found and _UUID.fullmatch(found) else found


def _as_id(value: JSON) -> str | None:
    if isinstance(value, str) and value[:1] == '"':
        value = unwrap(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _LIMIT or is_scrubbed(value):
        return None
    return value


def task_success(spans: Iterable[Span], all_names: AbstractSet[str]) -> bool | None:
    """What a span says of its task's success (`spanwise.task.success`), also as text."""
    if "spanwise.task.success" not in all_names:
        return None
    for span in spans:
        value = span.attributes.get("spanwise.task.success")
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
    return None
