"""Which session, user and task a trace belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from evaluators.dialects.decode import names_of
from evaluators.dialects.values import as_dict, is_scrubbed, unwrap
from evaluators.model import JSON, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Attribute keys of the user's own (`attributes.*` of the configuration), looked at before all others."""

    session: tuple[str, ...] = ()
    task: tuple[str, ...] = ("spanwise.task.id",)
    user: tuple[str, ...] = ()


_BAGS = (
    "traceloop.association.properties.",
    "ai.telemetry.metadata.",
    "ai.settings.context.",  # what the AI SDK calls it since 7
    "langsmith.metadata.",
    "langfuse.trace.metadata.",
    "langfuse.observation.metadata.",
    "mastra.metadata.",
    "genkit:metadata:",
    "metadata.",
    "",  # an attribute set by hand; Mastra before 1.0 copies the metadata so
)
"""Where a user's own properties of a trace end up, each under the name that the user gave it. Best first."""


def _in_bags(*names: str) -> tuple[str, ...]:
    """`names`, best first, in every bag."""
    return tuple(f"{bag}{name}" for name in names for bag in _BAGS)


SESSION = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "gcp.vertex.agent.session_id",
    "mlflow.trace.session",
    "gen_ai.session.id",
    "gen_ai.thread.id",
    "conversation.id",
    "spring.ai.chat.client.conversation.id",
    "genkit:sessionId",
    *_in_bags("session_id", "sessionId"),
    "traceloop.association.properties.session.id",
    *_in_bags("conversation_id", "conversationId", "chat_id", "chatId"),
    *_in_bags("thread_id", "threadId"),
)
"""Session ids, best first. `metadata.x` is also looked for inside the JSON of `metadata`."""
USER = (
    "user.id",
    "enduser.id",
    "langfuse.user.id",
    "gcp.vertex.agent.user_id",
    "mlflow.trace.user",
    "gen_ai.user.id",
    *_in_bags("user_id", "userId"),
    "traceloop.association.properties.user.id",
    "mastra.metadata.resourceId",
)
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
    ranks, has_nested = _ranked(tuple(keys))
    nested = has_nested and "metadata" in all_names
    if not nested and ranks.keys().isdisjoint(all_names):
        return None
    for span in spans:
        names = names_of(span.attributes)
        there: Iterable[str] = ranks.keys() & names
        if nested and "metadata" in names:
            there = (key for key in keys if key in names or key.startswith("metadata."))
        elif there:
            there = sorted(there, key=ranks.__getitem__)
        for key in there:
            if found := _id(span, key):
                return found, key
    return None


@lru_cache(maxsize=64)
def _ranked(keys: tuple[str, ...]) -> tuple[dict[str, int], bool]:
    """Each key's place, and whether one is looked for inside the JSON of `metadata`."""
    ranks = {key: rank for rank, key in reversed(list(enumerate(keys)))}
    return ranks, any(key.startswith("metadata.") for key in keys)


def _id(span: Span, key: str) -> str | None:
    value = span.attributes.get(key)
    if value is None and key.startswith("metadata."):
        value = as_dict(unwrap(span.attributes.get("metadata"))).get(key.removeprefix("metadata."))
    return _as_id(value)


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
