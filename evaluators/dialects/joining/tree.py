"""How the spans of a trace hang together. Parents may be missing, and broken ones may form a ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.dialects.content.facts import Facts
from evaluators.model import Root

_REMOTE = 0x300
"""Span flags: "the parent's remoteness is known" and "it is remote"."""


class Tree:
    """The facts of a trace, in order of start, with their parents and children."""

    __slots__ = ("_children", "_facts", "_spine", "order", "root", "root_kind", "scopes")

    def __init__(self, order: Sequence[Facts]) -> None:
        self.order = order
        self.scopes = frozenset({facts.span.scope for facts in order})
        """The instrumentations that took part."""
        self._facts = {facts.span.span_id: facts for facts in order}
        self._children: dict[str, list[Facts]] = {}
        self._spine: tuple[Facts, ...] | None = None
        for facts in order:
            self._children.setdefault(facts.span.parent_span_id, []).append(facts)
        self.root: Facts | None
        self.root_kind: Root
        self.root, self.root_kind = self._find_root()

    def _find_root(self) -> tuple[Facts | None, Root]:
        parentless = self._children.get("")
        if parentless:
            return parentless[0], "parentless"
        for facts in self.order:
            span = facts.span
            if span.parent_span_id not in self._facts and span.flags & _REMOTE == _REMOTE:
                return facts, "local"
        return None, "missing"

    def parent(self, facts: Facts) -> Facts | None:
        """The parent, if it is in the trace."""
        return self._facts.get(facts.span.parent_span_id)

    def children(self, facts: Facts) -> list[Facts]:
        """The children in order of start."""
        return self._children.get(facts.span.span_id, [])

    def ancestors(self, facts: Facts) -> Iterator[Facts]:
        """From the parent outwards; ends where a parent is missing or the ring closes."""
        seen = {facts.span.span_id}
        current = self.parent(facts)
        while current is not None and current.span.span_id not in seen:
            seen.add(current.span.span_id)
            yield current
            current = self.parent(current)

    @property
    def spine(self) -> tuple[Facts, ...]:
        """The root, then its one inner span, and so on, while there is exactly one: what wraps the work."""
        if self._spine is None:
            self._spine = tuple(self._find_spine())
        return self._spine

    def _find_spine(self) -> Iterator[Facts]:
        current = self.root
        seen: set[str] = set()
        while current is not None and current.span.span_id not in seen:
            seen.add(current.span.span_id)
            yield current
            inner = [child for child in self.children(current) if self._wraps(child)]
            current = inner[0] if len(inner) == 1 else None

    def _wraps(self, facts: Facts) -> bool:
        if facts.kind in ("llm", "tool", "handoff"):
            return False
        if facts.dialect == "plain" or facts.tool_name is not None:  # a function that was traced
            return bool(self.children(facts))
        return True
