"""LangGraph under any instrumentation: LangChain hands each of them the same metadata with every run.

`create_agent(name=...)` sets `lc_agent_name` on the agent's run and on all runs within it; a graph sets
`langgraph_node` on the runs of its nodes. Which kind of span an agent's run becomes depends on its name in some
instrumentations (OpenInference and Langfuse look for "agent" in it), so that the metadata alone tells an agent.
"""

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.values import as_dict, string, unwrap
from evaluators.model import Span

_AGENT, _NODE = "lc_agent_name", "langgraph_node"
_METADATA = "metadata"
"""One JSON object, in OpenInference and MLflow."""
_OF_ROOT = "langfuse.trace."  # Langfuse repeats the metadata of the root on every span
_NAMELESS = frozenset({"agent", "LangGraph"})
"""What nodes and graphs are called that were given no name of an agent."""
_PREFIX, _SUFFIXES = "execute_task ", (".workflow", ".task", ".agent")
"""What OpenLLMetry puts around a run's name."""


class MetadataKeys(NamedTuple):
    """Where the spans of one set of keys have LangGraph's metadata; None: nowhere."""

    agent: str | None
    node: str | None
    metadata: bool


def keys_in(names: AbstractSet[str]) -> MetadataKeys | None:
    """The keys among `names`; None when spans of these keys cannot have LangGraph's metadata."""
    own = [name for name in names if not name.startswith(_OF_ROOT)]
    agent = min((name for name in own if _ends_in(name, _AGENT)), default=None)
    node = min((name for name in own if _ends_in(name, _NODE)), default=None)
    keys = MetadataKeys(agent, node, _METADATA in names)
    return keys if any(keys) else None


def _ends_in(name: str, key: str) -> bool:
    return name == key or name.endswith(f".{key}")


def name_agent(facts: Facts, keys: MetadataKeys) -> Facts:
    """The same facts: the run of an agent that has a name is an agent of that name, and what it did was done by it."""
    agent, facts.graph_node = _metadata(facts.span, keys)
    if agent is None:
        if facts.graph_node is not None and facts.kind == "agent" and facts.agent in _NAMELESS:
            facts.agent = None
        return facts
    if facts.kind not in ("agent", "other"):
        facts.agent = agent
    elif facts.graph_node is None or agent in _run_names(facts):
        facts.run_name = facts.agent if facts.agent != agent else None
        facts.kind, facts.agent, facts.names_agent = "agent", agent, True
    return facts


def _metadata(span: Span, keys: MetadataKeys) -> tuple[str | None, str | None]:
    get = span.attributes.get
    if keys.agent or keys.node:
        return (
            string(unwrap(get(keys.agent))) if keys.agent else None,
            string(unwrap(get(keys.node))) if keys.node else None,
        )
    raw = get(_METADATA)
    if not isinstance(raw, str) or not (_AGENT in raw or _NODE in raw):
        return None, None
    metadata = as_dict(unwrap(raw))
    return string(metadata.get(_AGENT)), string(metadata.get(_NODE))


def _run_names(facts: Facts) -> set[str | None]:
    name = facts.span.name
    bare = name.removeprefix(_PREFIX)
    for suffix in _SUFFIXES:
        bare = bare.removesuffix(suffix)
    return {name, bare, facts.plain_name}
