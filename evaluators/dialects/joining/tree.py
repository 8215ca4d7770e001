"""How the spans of a trace hang together, and the agents that did the work. Broken parents may form a ring."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.names import stable_name
from evaluators.model import Root

_REMOTE = 0x300  # span flags: "the parent's remoteness is known" and "it is remote"
WORK = frozenset({"llm", "tool", "handoff"})  # kinds of spans that do a piece of a turn's work
_DEEP = 128  # ancestors of a span that are looked at: a chain of spans would otherwise cost the square of its length


class Tree:
    """The facts of a trace, in order of start, with their parents and children."""

    def __init__(self, order: Sequence[Facts]) -> None:
        self.order = order
        self.scopes = frozenset({facts.span.scope for facts in order})
        """The instrumentations that took part."""
        self._facts = {facts.span.span_id: facts for facts in order}
        self._children: dict[str, list[Facts]] = {}
        self.has_sides = False  # whether there is a guard's or a grader's span
        self.has_turns = False  # whether there is a span that a dialect calls a turn
        for facts in order:
            self._children.setdefault(facts.span.parent_span_id, []).append(facts)
            self.has_sides = self.has_sides or facts.is_side
            self.has_turns = self.has_turns or facts.turn is not None
        self.tops: Sequence[Facts]
        """The spans without a parent; where every span has one, those whose parent is not in the trace."""
        self.root: Facts | None
        self.root_kind: Root
        if parentless := self._children.get(""):
            self.tops, self.root, self.root_kind = parentless, parentless[0], "parentless"
        else:
            self.tops = [each for each in order if each.span.parent_span_id not in self._facts]
            self.tops = self.tops or order[:1]  # a ring of parents begins where time does
            self.root, self.root_kind = self._local_root()

    def _local_root(self) -> tuple[Facts | None, Root]:
        for facts in self.tops:
            if facts.is_root or facts.span.flags & _REMOTE == _REMOTE:
                return facts, "local"
        return None, "missing"

    def parent(self, facts: Facts) -> Facts | None:
        return self._facts.get(facts.span.parent_span_id)

    def children(self, facts: Facts) -> list[Facts]:
        return self._children.get(facts.span.span_id, [])

    def ancestors(self, facts: Facts) -> Iterator[Facts]:
        """The nearest 128 from the parent outwards; ends where a parent is missing or the ring closes."""
        seen = {facts.span.span_id}
        current = self.parent(facts)
        while current is not None and current.span.span_id not in seen and len(seen) <= _DEEP:
            seen.add(current.span.span_id)
            yield current
            current = self.parent(current)

    @cached_property
    def spine(self) -> tuple[Facts, ...]:
        """The root, then its one inner span, and so on, while there is exactly one: what wraps the work.

        Without a root the one span that is above all others: its parent may have been filtered or exported elsewhere.
        """
        return tuple(self._find_spine())

    def _find_spine(self) -> Iterator[Facts]:
        current = self.root or self._one_top()
        seen: set[str] = set()
        while current is not None and current.span.span_id not in seen:
            seen.add(current.span.span_id)
            yield current
            current = self._only_inner(current)

    def _one_top(self) -> Facts | None:
        only = self.tops[0] if len(self.tops) == 1 else None
        return None if only is None or only.kind in WORK else only

    def _only_inner(self, facts: Facts) -> Facts | None:
        found: Facts | None = None
        for child in self.children(facts):
            if child.kind not in WORK and self._wraps(child):
                if found is not None:
                    return None
                found = child
        return found

    def _wraps(self, facts: Facts) -> bool:
        if facts.dialect == "plain" or facts.tool_name is not None:  # a function that was traced
            return bool(self.children(facts))
        return True


class Agents:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._nearest: dict[str, str | None] = {}
        # OpenLLMetry puts a span around a LangChain agent's, under the name of the run.
        renamed = {(f.span.parent_span_id, f.run_name) for f in tree.order if f.run_name}
        spans = [
            facts
            for facts in tree.order
            if facts.kind == "agent"
            and stable_name(facts.agent)
            and (facts.span.span_id, facts.agent) not in renamed
        ]
        named = [f for f in spans if f.names_agent]
        said = None
        if not named and all(f.is_workflow for f in spans):
            said = self._mentioned() or self._graph()
        named = named or spans
        named = [f for f in named if not (f.agent or "").lower().endswith("workflow")] or named
        names = (stable_name(f.agent) for f in named)
        self.names = (said,) if said else tuple(dict.fromkeys(name for name in names if name))
        outermost = min(named, key=self._depth) if len(named) > 1 else next(iter(named), None)
        self.outermost = said or (stable_name(outermost.agent) if outermost else None)

    def _depth(self, facts: Facts) -> tuple[int, int, str]:
        depth = sum(1 for _ in self._tree.ancestors(facts))
        return depth, facts.span.start_time_unix_nano, facts.span.span_id

    def _mentioned(self) -> str | None:
        """No agent's span names it: the name that the first model or tool span gives, else another step's."""
        said = [f for f in self._tree.order if f.agent and f.kind != "agent"]
        work = (f.agent for f in said if f.kind in ("llm", "tool"))
        return stable_name(next(work, next((f.agent for f in said if f.names_agent), None)))

    def _graph(self) -> str | None:
        """The name of a LangGraph graph whose nodes are not agents: that of the run around the first node's run."""
        for facts in self._tree.order:
            parent = self._tree.parent(facts) if facts.graph_node is not None else None
            if parent is not None and parent.kind not in WORK and parent.graph_node is None:
                return stable_name(parent.agent or parent.plain_name or parent.span.name)
        return None

    def of(self, facts: Facts) -> str | None:
        """The agent a span worked for: the one it names, else its nearest agent span."""
        if facts.kind != "agent" and facts.agent:
            return stable_name(facts.agent)
        parent = facts.span.parent_span_id
        if facts.kind == "agent":  # in a ring of parents it may not find itself
            return self._around(facts)
        if parent not in self._nearest:
            self._nearest[parent] = self._around(facts)
        return self._nearest[parent]

    def named_by(self, facts: Facts) -> str | None:
        return stable_name(facts.agent) or self._around(facts)

    def of_first(self, layers: Iterable[Facts]) -> str | None:
        for facts in layers:
            if name := self.of(facts):
                return name
        return None

    def _around(self, facts: Facts) -> str | None:
        for ancestor in self._tree.ancestors(facts):
            if ancestor.kind == "agent" and (name := stable_name(ancestor.agent)):
                return name
        return None
