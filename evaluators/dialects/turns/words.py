"""Records of SDKs: words that were moved from spans to log events."""

import hashlib

from evaluators.dialects.decoding.decode import DETAILS, carries_messages
from evaluators.dialects.decoding.values import as_dict, as_list, unwrap
from evaluators.dialects.turns.place import (
    AgentEvent,
    Dropped,
    LogAgent,
    Place,
    from_resource,
    text,
)
from evaluators.digest import canonical
from evaluators.model import JSON

SPRING_AI = (
    "org.springframework.ai.chat.client.observation.ChatClient",
    "org.springframework.ai.chat.observation.ChatModel",
)
"""How the loggers of Spring AI 1.x begin that write prompts and answers."""


def carries_words(event: AgentEvent) -> bool:
    if carries_messages(event.name) or event.scope.startswith(SPRING_AI):
        return True
    return is_aws_body(event.body)


def is_aws_body(body: JSON) -> bool:
    """Whether it is the body of a record of AWS's distribution: the words of one span."""
    return isinstance(body, dict) and ("input" in body or "output" in body)


def _place(event: AgentEvent) -> Place | Dropped:
    """A turn is the calls whose history ends, but for what the agent did since, with the same words of a person.

    The call that has nothing after them begins it: the same question asked again is another turn.
    """
    if event.name != DETAILS:
        return "no_agent"
    owner = from_resource(event, "service.instance.id") or from_resource(event, "service.name")
    messages = unwrap(event.attributes.get("gen_ai.input.messages"))
    history = as_list(messages)
    asked = next((i for i in range(len(history), 0, -1) if _is_persons(history[i - 1])), 0)
    if not asked:
        session = text(event, "gen_ai.response.id") or str(event.time_unix_nano)
        return Place(session=session, owner=owner, is_prompt=True)
    session = hashlib.sha256(canonical(history[:asked])).hexdigest()
    return Place(session=session, owner=owner, is_prompt=asked == len(history))


def _is_persons(message: JSON) -> bool:
    item = as_dict(message)
    parts = as_list(item.get("parts"))
    results = sum(as_dict(part).get("type") == "tool_call_response" for part in parts)
    return item.get("role") == "user" and (not parts or results < len(parts))


WORDS = LogAgent(name="genai_events", scopes=(), place=_place)
