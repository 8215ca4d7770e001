"""Which session, user and task a trace belongs to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from evaluators.dialects.content.names import clean_name
from evaluators.dialects.decoding.decode import ask, names_of
from evaluators.dialects.decoding.key_sets import Among
from evaluators.dialects.decoding.values import as_dict, in_order, is_scrubbed, unwrap
from evaluators.model import JSON, Span

What = Literal["session", "user", "task"]


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Attribute keys of the user's own (`attributes.*` of the configuration), looked at before all others."""

    session: tuple[str, ...] = ()
    task: tuple[str, ...] = ("spanwise.task.id",)
    user: tuple[str, ...] = ()
    filter: tuple[str, ...] = ()  # not ids: their values are kept with the trace

    @cached_property
    def ranked(self) -> Mapping[What, _Ranked]:
        return {
            "session": _ranked(*self.session, *SESSION),
            "user": _ranked(*self.user, *USER),
            "task": _ranked(*self.task),
        }


_Ranked = tuple[frozenset[str], Among, frozenset[str]]
"""All keys of an id; which of them are there, best first; and those also looked for inside `metadata`."""


@lru_cache(maxsize=64)
def _ranked(*keys: str) -> _Ranked:
    inside = frozenset(key for key in keys if key.startswith(f"{_BAG}."))
    return frozenset(keys), Among(*keys), inside


_BAGS = (
    "traceloop.association.properties.",
    "lmnr.association.properties.",
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
    return tuple(f"{bag}{name}" for name in names for bag in _BAGS)


SESSION = (
    *in_order(
        """session.id gen_ai.conversation.id langfuse.session.id
        langfuse.observation.metadata.langfuse_session_id gcp.vertex.agent.session_id mlflow.trace.session
        gen_ai.session.id gen_ai.thread.id conversation.id spring.ai.chat.client.conversation.id genkit:sessionId
        langwatch.thread.id scope.agentic.session"""
    ),
    *_in_bags("session_id", "sessionId"),
    "traceloop.association.properties.session.id",
    *_in_bags("conversation_id", "conversationId", "chat_id", "chatId"),
    *_in_bags("thread_id", "threadId"),
    "litellm.trace_id",
    "group_id",
)
"""Session ids, best first. `metadata.x` is also looked for inside the JSON of `metadata`."""
USER = (
    *in_order(
        """user.id enduser.id langfuse.user.id langfuse.observation.metadata.langfuse_user_id
        gcp.vertex.agent.user_id mlflow.trace.user gen_ai.user.id langwatch.user.id"""
    ),
    *_in_bags("user_id", "userId"),
    "traceloop.association.properties.user.id",
    "mastra.metadata.resourceId",
)
ONLY_OF = {"group_id": "logfire.openai_agents"}
"""Keys that mean a session in one scope only: the Agents SDK links the turns of a conversation by a group."""
_GENERATED = ("litellm.trace_id",)
"""Keys that hold the session where the caller gave one, else a UUID of the single request, which is not a session."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BAG = "metadata"
_LIMIT = 1_024
"""Characters; a longer id is not an id."""


def find_id(
    spans: Iterable[Span], what: What, keys: Keys, all_names: AbstractSet[str]
) -> tuple[str, str] | None:
    """The first span's best id as (id, key); None when no span carries one. A scrubbed id does not count.

    `keys`: the user's own.
    """
    keys_of_id, among, inside = keys.ranked[what]
    nested = bool(inside) and _BAG in all_names
    if not nested and keys_of_id.isdisjoint(all_names):
        return None
    for span in spans:
        there: tuple[str, ...] = ask(span.attributes, among)
        if nested and _BAG in names_of(span.attributes):
            there = tuple(key for key in among if key in there or key in inside)
        for key in there:
            if value := _id(span, key):
                return value, key
    return None


def find_values(spans: Sequence[Span], keys: Keys) -> dict[str, str]:
    """By key of `keys.filter`, the value that the first span has, or its resource; keys that none has are left out."""
    found: dict[str, str] = {}
    for key in keys.filter:
        for span in spans:
            if value := _id(span, key) or _as_text(
                span.attributes.get(key, span.resource.get(key))
            ):
                found[key] = clean_name(value)
                break
    return found


def _as_text(value: JSON) -> str | None:
    return json.dumps(value) if isinstance(value, bool | float) else _as_id(value)


def _id(span: Span, key: str) -> str | None:
    if not span.scope.startswith(ONLY_OF.get(key, "")):
        return None
    value = span.attributes.get(key)
    if value is None and key.startswith("metadata."):
        value = as_dict(unwrap(span.attributes.get("metadata"))).get(key.removeprefix("metadata."))
    identifier = _as_id(value)
    return None if key in _GENERATED and identifier and _UUID.fullmatch(identifier) else identifier


def _as_id(value: JSON) -> str | None:
    if isinstance(value, str) and value[:1] == '"':
        value = unwrap(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _LIMIT or is_scrubbed(value):
        return None
    return value


def task_success(spans: Iterable[Span], all_names: AbstractSet[str]) -> bool | None:
    """The first span's `spanwise.task.success`, a truth value or its text; None: no span has one."""
    if "spanwise.task.success" not in all_names:
        return None
    for span in spans:
        value = span.attributes.get("spanwise.task.success")
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
    return None
