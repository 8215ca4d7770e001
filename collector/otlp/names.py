"""Which names are shown where content is not (`redaction.content: drop`). Pure.

Programs choose most names of tools, spans and attributes, but nothing keeps a sender from putting a message there. A
name is shown when it looks like one: a word, or an operation and a word behind a space, without a known kind of secret.
"""

import re
from functools import lru_cache

from collector.config.linear_patterns import KINDS
from collector.otlp.marking import Marking, Steps
from collector.otlp.secret_kinds import is_card

DROPPED = "[dropped]"  # is where a name is not shown
_WORD = re.compile(r"[A-Za-z0-9_./:\-]{1,64}")
_NUMBER = re.compile(r"\d{7}")
_DAY = re.compile(r"(?<!\d)20\d\d(?:0[1-9]|1[0-2])[0-3]\d(?!\d)")
"""As in names of models: claude-sonnet-4-20250514."""
_known = Marking({kind: kind for kind in KINDS})


@lru_cache(maxsize=4096)
def is_name(text: str) -> bool:
    """Whether the text looks like a name: one word of at most 64 characters, and no number of something or someone."""
    return (
        _WORD.fullmatch(text) is not None
        and _NUMBER.search(_DAY.sub("", text)) is None
        and _known.text(text.encode(), Steps()) is None
    )


def name_shown(text: str) -> str:
    """The name of a tool, an event, a scope or a model, if it looks like one."""
    return text if not text or is_name(text) else DROPPED


def span_name_shown(text: str) -> str:
    """The name of a span: an operation alone or, as the GenAI conventions have it, followed by its target."""
    operation, space, target = text.partition(" ")
    return (
        f"{name_shown(operation)}{space}{name_shown(target)}"
        if is_name(operation)
        else name_shown(text)
    )


def is_shown(value: object) -> bool:
    return isinstance(value, (bool, float)) or (isinstance(value, int) and not is_card(str(value)))
