"""The rules as Prometheus reads them. `spanwise slo`, the docs and the tests take them from here."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from collector.slo import expressions as promql
from collector.slo.alerts import ALERTS, Alert
from collector.slo.words import RuleWords

PAGE = "http://127.0.0.1:4390"  # where the page is by default
HELP = "/help"  # behind the page's address: what each alert means and what to do
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


class RuleGroup(TypedDict):
    """One group of a rule file; its rules are evaluated in their order."""

    name: str
    rules: list[Rule]


def rules(
    objective: float | None = None,
    evaluators: Mapping[str, float] | None = None,
    page: str = PAGE,
    *,
    runbook: str | None = None,
    exported: bool = False,
) -> list[RuleGroup]:
    """The groups of a rule file.

    Args:
        objective: Share of scores that is to pass, above 0 and below 1, where neither the service exports an objective
            nor `evaluators` has one. None: none is assumed.
        evaluators: The same by evaluator; it comes before what the service exports.
        page: Address of the page, for links, without a slash at its end.
        runbook: Where each alert is explained, as `<runbook>#agentfault`. None: the page's own help.
        exported: With the rules of objectives although none is given: what the service exports is read.

    Without any objective there are no burn rates and no recording rules: ten alerts.
    """
    own = evaluators or {}
    explained = runbook or f"{page}{HELP}"
    always = [_alert(each, page, explained) for each in ALERTS if not each.needs_objective]
    groups: list[RuleGroup] = [{"name": "spanwise", "rules": always}]
    if objective is not None or own or exported:
        burns = [_alert(each, page, explained) for each in ALERTS if each.needs_objective]
        groups.insert(
            0, {"name": "spanwise-objectives", "rules": [*recordings(objective, own), *burns]}
        )
    return groups


def recordings(objective: float | None, evaluators: Mapping[str, float]) -> list[Rule]:
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


def _alert(alert: Alert, page: str, runbook: str) -> Rule:
    words = RuleWords(alert.labels)
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": f"{alert.hold // 60}h" if alert.hold and alert.hold % 60 == 0 else f"{alert.hold}m",
        "labels": {"severity": alert.severity(words)},
        "annotations": {
            "summary": alert.summary(words),
            "description": alert.description(words),
            "runbook": f"{runbook}#{alert.name.lower()}",
            "page": f"{page}{alert.page(words)}",
        },
    }
