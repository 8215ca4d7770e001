"""How the texts of alerts are written: one text for a rule file of Prometheus and for a notice of our own.

A text is a function of `Words`. `RuleWords` answers with Prometheus templates, which Prometheus fills in when the
alert fires; `LiveWords` (`collector/notices/alarms.py`) answers with the values themselves. An alert's own value is
one number, and a person wants to know since when and by how much: a text may ask for the value of another family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

CLOCK = "clock"
"""The shape of a moment, in Unix seconds: `06:41 UTC`."""


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """The largest value of a family's series that have the alert's labels; or one value for each group of them."""

    family: str
    by: tuple[str, ...] = ()  # of groups: the labels that tell them apart
    of: tuple[str, ...] = ()  # of groups: which of the alert's labels the series have
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Labels that the series have besides the alert's."""
    is_increase: bool = False
    """The sum of what counters grew by in the last 30 minutes instead."""
    where: str | None = None
    """Only groups that this family has above 0, too."""


class Words(Protocol):
    """What a text is made of."""

    def label(self, name: str) -> str: ...

    def quoted(self, name: str) -> str:
        """The same for the query of a URL."""
        ...

    def value(self, shape: str) -> str:
        """The alert's value. `shape` is `%.0f`, `%.2f`, CLOCK, or the name of a function of Prometheus's templates."""
        ...

    def ask(self, query: AlertQuery | str, shape: str) -> str:
        """The value of a query; `unknown` where it has none. A text as `query` is PromQL: only Prometheus knows it.

        Of a moment (CLOCK) it also says how long ago that is.
        """
        ...

    def each(self, query: AlertQuery, text: Text, otherwise: str = "") -> str:
        """The text of each group; `otherwise`: where there is none."""
        ...

    def when(self, label: str, texts: Mapping[str, str], otherwise: str = "") -> str: ...

    def given(self, label: str, text: str, otherwise: str = "") -> str: ...

    def above(self, limit: float, text: str, otherwise: str = "") -> str: ...


Text = Callable[[Words], str]


@dataclass(frozen=True, slots=True)
class RuleWords:
    """Prometheus templates."""

    labels: tuple[str, ...]
    labels_at: str = "$labels"
    value_at: str = "$value"

    def label(self, name: str) -> str:
        return f"{{{{ {self.labels_at}.{name} }}}}"

    def quoted(self, name: str) -> str:
        return f"{{{{ {self.labels_at}.{name} | urlquery }}}}"

    def value(self, shape: str) -> str:
        return f"{{{{ {_shown(self.value_at, shape)} }}}}"

    def ask(self, query: AlertQuery | str, shape: str) -> str:
        asked = query if isinstance(query, str) else _promql(query)
        value = ". | first | value"
        text = (
            f"{self._asking('with', asked, self.labels)}"
            f"{{{{ {_shown(value, shape)} }}}}{{{{ else }}}}unknown{{{{ end }}}}"
        )
        if shape != CLOCK:
            return text
        ago = self._asking("with", f"clamp_min(time() - {asked}, 0)", self.labels)
        return f"{text}{ago}, {{{{ {_shown(value, 'humanizeDuration')} }}}} ago{{{{ end }}}}"

    def each(self, query: AlertQuery, text: Text, otherwise: str = "") -> str:
        row = RuleWords(query.by, labels_at=".Labels", value_at=".Value")
        return (
            f"{self._asking('range', _promql(query), query.of)}{text(row)}{_otherwise(otherwise)}"
        )

    def when(self, label: str, texts: Mapping[str, str], otherwise: str = "") -> str:
        chain = "".join(
            f'{{{{ {"else " if at else ""}if eq {self.labels_at}.{label} "{value}" }}}}{text}'
            for at, (value, text) in enumerate(texts.items())
        )
        return f"{chain}{_otherwise(otherwise)}"

    def given(self, label: str, text: str, otherwise: str = "") -> str:
        return f"{{{{ if {self.labels_at}.{label} }}}}{text}{_otherwise(otherwise)}"

    def above(self, limit: float, text: str, otherwise: str = "") -> str:
        return f"{{{{ if gt {self.value_at} {limit:.1f} }}}}{text}{_otherwise(otherwise)}"

    def _asking(self, action: str, asked: str, labels: tuple[str, ...]) -> str:
        matchers = ",".join(f"{name}=%q" for name in labels)
        given = " ".join([f"{self.labels_at}.{name}" for name in labels] * asked.count("{@"))
        quoted = asked.replace("{@", f"{{{matchers}").replace('"', '\\"')
        return f'{{{{ {action} printf "{quoted}" {given} | query }}}}'


def _promql(query: AlertQuery) -> str:
    grouped = f"max by ({', '.join(query.by)}) " if query.by else "max"
    more = "".join(f',{name}="{value}"' for name, value in query.labels.items())
    series = f"{query.family}{{@{more}}}"
    if query.is_increase:
        return f"sum(increase({series}[30m]))"
    where = "" if query.where is None else f" and {grouped}({query.where}{{@}}) > 0"
    return f"{grouped}({series}){where}"


def _otherwise(text: str) -> str:
    return f"{{{{ else }}}}{text}{{{{ end }}}}" if text else "{{ end }}"


def _shown(value: str, shape: str) -> str:
    if shape == CLOCK:
        return f'({value} | toTime).Format "15:04 UTC"'
    return f'{value} | printf "{shape}"' if shape.startswith("%") else f"{value} | {shape}"
