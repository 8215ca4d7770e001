"""The series that rules read, found in their PromQL."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from collector.slo.rules import RuleGroup

_SELECTOR = re.compile(r"\b(spanwise_[a-z_]+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)(?:\\?"((?:[^"\\])*)\\?"|%q)')


class Selector(NamedTuple):
    """One family and what its labels are asked for."""

    family: str
    matchers: tuple[tuple[str, tuple[str, ...]], ...]
    """By label: the values that it must have (or must not have); none where the alert's own are put in."""


def selectors(groups: Sequence[RuleGroup]) -> Iterator[Selector]:
    """Of expressions and texts."""
    for group in groups:
        for rule in group["rules"]:
            for text in (rule["expr"], *rule.get("annotations", {}).values()):
                for family, inside in _SELECTOR.findall(text):
                    yield Selector(
                        family,
                        tuple(
                            (name, tuple(values.split("|")) if values else ())
                            for name, _, values in _MATCHER.findall(inside)
                        ),
                    )
