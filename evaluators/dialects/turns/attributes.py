"""Values of events' attributes as texts: producers write numbers and ids in several types."""

from evaluators.dialects.turns.place import AgentEvent


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
