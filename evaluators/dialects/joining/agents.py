"""Who did the work: the agents of a trace, by names that stay the same from run to run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.joining.tree import Tree

_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_DIGITS = re.compile(r"\d{6,}")
_LOOSE = re.compile(r"[\s_\-:./]+(?=[\s_\-:./]|$)|^[\s_\-:./]+")
_SHORT = 256
"""Characters of a name that is remembered."""
_METHODS = (".kickoff", "._execute_core", ".execute_core")


def stable_name(name: str | None) -> str | None:
    """A name without what changes from run to run: UUIDs and runs of six and more digits."""
    if not name:
        return None
    return _stable(name) if len(name) <= _SHORT else _stable.__wrapped__(name)


@lru_cache(maxsize=512)
def _stable(name: str) -> str | None:
    if _UUID.search(name) or _DIGITS.search(name):
        name = _LOOSE.sub("", _DIGITS.sub("", _UUID.sub("", name)))
    for method in _METHODS:
        name = name.removesuffix(method)
    return name[:200].strip("_ ") or None


class Agents:
    """The agents of one trace."""

    __slots__ = ("_nearest", "_tree", "names", "outermost")

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._nearest: dict[str, str | None] = {}
        spans = [f for f in tree.order if f.kind == "agent" and stable_name(f.agent)]
        named = [f for f in spans if f.names_agent] or spans
        self.names = tuple(dict.fromkeys(name for f in named if (name := stable_name(f.agent))))
        outermost = min(named, key=self._depth) if len(named) > 1 else next(iter(named), None)
        self.outermost = stable_name(outermost.agent) if outermost else self._mentioned()
        if not self.names and self.outermost:
            self.names = (self.outermost,)

    def _depth(self, facts: Facts) -> tuple[int, int, str]:
        depth = sum(1 for _ in self._tree.ancestors(facts))
        return depth, facts.span.start_time_unix_nano, facts.span.span_id

    def _mentioned(self) -> str | None:
        """No agent span arrived: the name that the first model or tool span gives."""
        for facts in self._tree.order:
            if facts.kind in ("llm", "tool") and facts.agent:
                return stable_name(facts.agent)
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

    def of_first(self, layers: Iterable[Facts]) -> str | None:
        """The agent of the first layer of a call that has one."""
        for facts in layers:
            if name := self.of(facts):
                return name
        return None

    def _around(self, facts: Facts) -> str | None:
        for ancestor in self._tree.ancestors(facts):
            if ancestor.kind == "agent" and (name := stable_name(ancestor.agent)):
                return name
        return None
