"""The declaration of an agent that speaks in logs: which events are its own, and where each belongs."""

from collections.abc import Callable
from dataclasses import dataclass

from evaluators.dialects.turns.place import AgentEvent, Dropped, Place

# Values of events' attributes as texts: producers write numbers and ids in several types.


def text(event: AgentEvent, *keys: str) -> str:
    """The first of these attributes that holds a text which is not empty; "" where none does."""
    for key in keys:
        value = event.attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def from_resource(event: AgentEvent, key: str) -> str:
    """A text of the resource; "" where it has none."""
    value = event.resource.get(key)
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class LogAgent:
    """One agent. Its file in `turns/` declares it, `registry.LOG_AGENTS` names it; its words are read in `readers/`."""

    name: str  # as its dialect is called
    scopes: tuple[str, ...]  # how the instrumentation scopes of its log records begin
    place: Callable[[AgentEvent], Place | Dropped]  # where one of its log records belongs
    span_scopes: tuple[str, ...] = ()  # scopes of spans that belong to its turns
    place_span: Callable[[AgentEvent], Place | None] | None = None
    """Where a span of a resource with one of `span_scopes` belongs; None: it stays in its own trace."""
    turn_span: str = ""
    """The span that is a whole turn. Without a parent it begins a trace of its own, by whose id the turn goes."""
