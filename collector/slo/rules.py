"""The rules as Prometheus reads them. `spanwise slo`, the docs and the tests take them from here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NotRequired, TypedDict

from collector.slo import expressions as promql
from collector.slo.alerts import ALERTS, Alert

PAGE = "http://127.0.0.1:4390"
"""Where the page stands by default."""
RUNBOOK = "docs/alerting.md"
Rule = TypedDict(
    "Rule",
    {
        "record": NotRequired[str],
        "alert": NotRequired[str],
        "expr": str,
        "for": NotRequired[str],
        "labels": NotRequired[dict[str, str]],
        "annotations": NotRequired[dict[str, str]],
    },
)
"""One rule, as in a rule file."""


class Group(TypedDict):
    """One group of a rule file; its rules are evaluated in their order."""

    name: str
    rules: list[Rule]


_ASK = re.compile(r"\[\[ask (.+?) \| (\S+?)\]\]")
_FOR = re.compile(r"\[\[for (.+?) of ([a-z, ]+?)\]\]")
_FAMILY = re.compile(r"[a-z_:]*(?:spanwise_|agent:)[a-z0-9_:]+")


def rules(
    objective: float | None = None,
    evaluators: Mapping[str, float] | None = None,
    page: str = PAGE,
    *,
    exported: bool = False,
) -> list[Group]:
    """The groups of a rule file.

    Args:
        objective: Share of scores that is to pass, above 0 and below 1, where neither the service exports an objective
            nor `evaluators` has one. None: none is assumed.
        evaluators: The same by evaluator; it comes before what the service exports.
        page: Address of the page, for links, without a slash at its end.
        exported: With the rules of objectives although none is given: what the service exports is read.

    Without any objective there are no burn rates and no recording rules: eight alerts.
    """
    own = evaluators or {}
    always = [_alert(each, page) for each in ALERTS if not each.needs_objective]
    groups: list[Group] = [{"name": "spanwise", "rules": always}]
    if objective is not None or own or exported:
        burns = [_alert(each, page) for each in ALERTS if each.needs_objective]
        groups.insert(
            0, {"name": "spanwise-objectives", "rules": [*recordings(objective, own), *burns]}
        )
    return groups


def recordings(objective: float | None, evaluators: Mapping[str, float]) -> list[Rule]:
    """The recording rules, each before those that read it."""
    ratios = {
        f"agent:quality_fail:ratio_rate{window}": promql.fail_ratio(window)
        for window in ("5m", "30m", "1h", "6h", "3d")
    }
    counts = {
        f"agent:quality_valid:increase{window}": promql.valid_increase(window)
        for window in ("1h", "6h")
    }
    limits = {
        "agent:error_budget:ratio": promql.error_budget(objective, evaluators),
        "agent:burn_limit_page:ratio": promql.BURN_LIMIT_PAGE,
        "agent:burn_limit_slow:ratio": promql.BURN_LIMIT_SLOW,
    }
    return [{"record": name, "expr": expr} for name, expr in {**ratios, **counts, **limits}.items()]


def _alert(alert: Alert, page: str) -> Rule:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.hold,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": _asking(alert.description, alert.labels),
            "runbook": f"{RUNBOOK}#{alert.name.lower()}",
            "page": alert.page.replace("[[page]]", page),
        },
    }


def _asking(text: str, labels: tuple[str, ...]) -> str:
    """Write out the queries of a text: of a family, the series with the alert's labels; of none, it says `unknown`."""
    values = " ".join(f"$labels.{name}" for name in labels)
    matchers = ",".join(f"{name}=%q" for name in labels)

    def query(found: re.Match[str]) -> str:
        expr, shape = found.groups()
        if "{@" in expr:
            asked = expr.replace("{@", f"{{{matchers}")
        else:
            asked = _FAMILY.sub(lambda name: f"max({name[0]}{{{matchers}}})", expr)
        shown = f'printf "{shape}"' if shape.startswith("%") else shape
        quoted = asked.replace('"', '\\"')
        return (
            f'{{{{ with printf "{quoted}" {values} | query }}}}'
            f"{{{{ . | first | value | {shown} }}}}{{{{ else }}}}unknown{{{{ end }}}}"
        )

    def loop(found: re.Match[str]) -> str:
        names = found[2].split(", ")
        asked = found[1].replace("{@}", f"{{{','.join(f'{name}=%q' for name in names)}}}")
        given = " ".join([f"$labels.{name}" for name in names] * found[1].count("{@}"))
        return f'{{{{ range printf "{asked}" {given} | query }}}}'

    return _FOR.sub(loop, _ASK.sub(query, text)).replace("[[end]]", "{{ end }}")
