"""Spring AI 1.x: log records with the words of the span whose ids they carry; the logger says which words.

    Chat Client Prompt Content:
    ["system":"Be kind.", "user":"Is it raining?"]

Texts are between quotes as they are: neither their quotes nor their line ends are escaped. A prompt of a model has
no roles; an answer that only calls tools is `[]`.
"""

import re
from collections.abc import Mapping

from evaluators.dialects.enrichment.records import body_of
from evaluators.dialects.turns.words import SPRING_AI
from evaluators.model import JSON, Span

_ENTRY = re.compile(
    r'"(system|user|assistant|tool)":"(.*?)"(?=, "(?:system|user|assistant|tool)":"|\])',
    re.DOTALL | re.IGNORECASE,
)
_UNSAID = frozenset({"", "null"})
"""In a model's prompt: what represents a message that only calls tools, and their results."""


def is_one(record: Span) -> bool:
    return record.scope.startswith(SPRING_AI)


def words(record: Span) -> Mapping[str, JSON]:
    """The attributes that say what the record does; empty: it says nothing."""
    body = body_of(record)
    listed = body.partition("\n")[2].strip() if isinstance(body, str) else ""
    if not (listed.startswith('["') and listed.endswith('"]')):
        return {}
    if "Completion" in record.scope:
        return {"gen_ai.completion": [listed[2:-2]]}
    if messages := _entries(listed):
        return {"gen_ai.input.messages": messages}
    texts = listed[2:-2].split('", "')
    if listed.count('"') != 2 * len(texts):  # quotes of its own: where a text ends is unknown
        return {}
    said = [text for text in texts if text not in _UNSAID]
    return {"gen_ai.prompt": said[-1:]} if said else {}


def _entries(listed: str) -> list[JSON]:
    """The messages of a client's prompt; empty: it is a model's."""
    found: list[JSON] = []
    at = 1
    for entry in _ENTRY.finditer(listed):
        if entry.start() != at:
            return []
        found.append({"role": entry[1].lower(), "content": entry[2]})
        at = entry.end() + 2
    return found
