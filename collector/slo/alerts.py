"""The alerts: names, severities, labels, texts. Data.

A text is a Prometheus template. `[[page]]` is the page's address, `[[ask EXPR]]` the value of a query for exactly the
labels of the alert (`rules.py` writes it out), because an alert's own value is one number and a person wants to know
since when and by how much. `[[for EXPR of LABELS]]` repeats the text up to `[[end]]` for each series of a query,
whose `{@}` are these labels of the alert.
"""

from __future__ import annotations

from dataclasses import dataclass

from collector.records.standing import FAULT_WORDS, FAULTS_THAT_PAGE
from collector.slo import expressions as promql

SCORED = ("service", "agent", "evaluator", "scope")
AGENT_PAGE = (
    "[[page]]/?service={{ $labels.service | urlquery }}&agent={{ $labels.agent | urlquery }}"
)
"""What changed, and what runs away."""
_SESSIONS = "[[page]]/sessions?service={{ $labels.service | urlquery }}&agent={{ $labels.agent | urlquery }}"
_FAILED = f"{_SESSIONS}&failed={{{{ $labels.evaluator | urlquery }}}}&since="
"""The sessions in which the evaluator failed; since when stands behind it."""
SERVICE_PAGE = "[[page]]/?service={{ $labels.service | urlquery }}"
PAGE = "[[page]]/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alerting rule."""

    name: str
    severity: str
    labels: tuple[str, ...]
    """What it carries, beside `severity`."""
    hold: str
    """`for`: how long it holds before it fires."""
    expr: str
    needs_objective: bool = False
    summary: str
    description: str
    page: str


_WINDOW = (
    "The mean of its newest [[ask spanwise_window_samples | %.0f]] sessions is"
    " [[ask spanwise_window_mean_ratio | %.2f]] (95 % bounds"
    " [[ask spanwise_window_lower_bound_ratio | %.2f]] to [[ask spanwise_window_upper_bound_ratio | %.2f]])."
)
_BURN = (
    "The objective is that [[ask 1 - agent:error_budget:ratio | humanizePercentage]] pass;"
    " [[ask agent:error_budget:ratio | humanizePercentage]] may fail."
)

_FAULT = (
    "".join(
        f'{{{{ {"else " if at else ""}if eq $labels.fault "{fault}" }}}}'
        f"{words.format(tool='{{ $labels.tool }}')}"
        for at, (fault, words) in enumerate(FAULT_WORDS.items())
    )
    + "{{ end }}"
)
"""What fails, in words."""

BURNS = (
    Alert(
        name="AgentQualityFastBurn",
        severity="page",
        labels=SCORED,
        hold="2m",
        expr=promql.FAST_BURN,
        needs_objective=True,
        summary="{{ $labels.agent }} ({{ $labels.service }}): {{ $value | humanizePercentage }}"
        " of {{ $labels.evaluator }} failed in the last hour",
        description="Of [[ask agent:quality_valid:increase1h | %.0f]] scores in the last hour"
        " {{ $value | humanizePercentage }} failed, in the last 5 minutes"
        f" [[ask agent:quality_fail:ratio_rate5m | humanizePercentage]]. {_BURN}",
        page=f"{_FAILED}1h",
    ),
    Alert(
        name="AgentQualitySlowBurn",
        severity="page",
        labels=SCORED,
        hold="15m",
        expr=promql.SLOW_BURN,
        needs_objective=True,
        summary="{{ $labels.agent }} ({{ $labels.service }}): {{ $value | humanizePercentage }}"
        " of {{ $labels.evaluator }} failed in six hours",
        description="Of [[ask agent:quality_valid:increase6h | %.0f]] scores in the last 6 hours"
        " {{ $value | humanizePercentage }} failed, in the last 30 minutes"
        f" [[ask agent:quality_fail:ratio_rate30m | humanizePercentage]]. {_BURN}",
        page=f"{_FAILED}6h",
    ),
    Alert(
        name="AgentQualityBudgetDraining",
        severity="ticket",
        labels=SCORED,
        hold="1h",
        expr=promql.BUDGET_DRAINING,
        needs_objective=True,
        summary="{{ $labels.agent }} ({{ $labels.service }}): {{ $value | humanizePercentage }}"
        " of {{ $labels.evaluator }} failed in three days, more than its objective allows",
        description="{{ $value | humanizePercentage }} of the scores of the last 3 days failed, of the last"
        f" 6 hours [[ask agent:quality_fail:ratio_rate6h | humanizePercentage]]. {_BURN}",
        page=f"{_FAILED}3d",
    ),
    Alert(
        name="AgentReliabilityBelowObjective",
        severity="page",
        labels=SCORED,
        hold="5m",
        expr=promql.BELOW_OBJECTIVE,
        needs_objective=True,
        summary="{{ $labels.agent }} ({{ $labels.service }}): {{ $labels.evaluator }} is below its objective",
        description=f"{_WINDOW} Even the upper bound is below the objective of"
        " [[ask 1 - agent:error_budget:ratio | %.2f]].",
        page=_SESSIONS,
    ),
)

FAULT = Alert(
    name="AgentFault",
    severity=f'{{{{ if match "^({"|".join(sorted(FAULTS_THAT_PAGE))})$" $labels.fault }}}}page'
    "{{ else }}ticket{{ end }}",
    labels=("service", "agent", "fault", "tool"),
    hold="0m",
    expr=promql.FAULT,
    summary=f"{{{{ $labels.agent }}}} ({{{{ $labels.service }}}}): {_FAULT}",
    description=f"{_FAULT} in"
    ' [[ask spanwise_fault_failures{@,period="since"} | %.0f]] of'
    ' [[ask spanwise_fault_uses{@,period="since"} | %.0f]] sessions since'
    " [[ask spanwise_fault_since_timestamp_seconds | humanizeTimestamp]],"
    ' in [[ask spanwise_fault_failures{@,period="before"} | %.0f]] of'
    ' [[ask spanwise_fault_uses{@,period="before"} | %.0f]] before.',
    page=AGENT_PAGE,
)
DROP = Alert(
    name="AgentScoreDrop",
    severity="{{ if gt $value 1.0 }}page{{ else }}ticket{{ end }}",
    labels=("service", "agent", "scope"),
    hold="1m",
    expr=promql.DROP,
    summary="{{ $labels.agent }} ({{ $labels.service }}): scores of its {{ $labels.scope }}s are worse than before",
    description="[[for max by (fault, tool) (spanwise_drift_cause{@}) of service, agent]]"
    '{{ if eq .Labels.fault "unknown" }}The cause is unknown: no tool, model call or loop fails more than before.'
    "{{ else }}It is explained by the fault {{ .Labels.fault }}"
    "{{ if .Labels.tool }} of {{ .Labels.tool }}{{ end }}.{{ end }}[[end]]"
    "[[for max by (evaluator) (spanwise_drift_since_timestamp_seconds{@}) of service, agent, scope]]"
    " {{ .Labels.evaluator }} dropped {{ .Value | humanizeTimestamp }}.[[end]]"
    "[[for max by (evaluator) (spanwise_window_mean_ratio{@})"
    " and max by (evaluator) (spanwise_drift_detected{@}) > 0 of service, agent, scope]]"
    ' The mean of {{ .Labels.evaluator }} over its window is {{ printf "%.2f" .Value }}.[[end]]'
    " It may be a changed prompt, model or mix of questions: compare three sessions from before with three since."
    " In the first two weeks of an agent it may also be the time of day or of the week.",
    page=AGENT_PAGE,
)
RUNAWAY = Alert(
    name="AgentRunaway",
    severity="page",
    labels=("service", "agent", "reason"),
    hold="0m",
    expr=promql.RUNAWAY,
    summary="{{ $labels.agent }} ({{ $labels.service }}) is running away: {{ $labels.reason }}",
    description='{{ $value }} open trace{{ if ne $value 1.0 }}s{{ end }} {{ if eq $labels.reason "repeated_calls" }}'
    "repeated one tool call with the same result at least 10 times{{ else }}"
    "called the model more than 4 times as often as this agent's traces usually do{{ end }}"
    " and still go on. They cost until somebody stops them.",
    page=AGENT_PAGE,
)

ALERTS = (
    *BURNS,
    FAULT,
    DROP,
    RUNAWAY,
    Alert(
        name="AgentEvaluatorBlind",
        severity="ticket",
        labels=("evaluator",),
        hold="10m",
        expr=promql.BLIND,
        summary="{{ $labels.evaluator }} fails: agents are not measured by it",
        description="{{ $value | humanizePercentage }} of its evaluations in the last hour ended in an error. What is"
        " not measured counts neither as good nor as bad.",
        page=PAGE,
    ),
    Alert(
        name="AgentScoresStale",
        severity="page",
        labels=("service",),
        hold="5m",
        expr=promql.STALE,
        summary="{{ if $labels.service }}{{ $labels.service }} has traffic and no scores"
        "{{ else }}Traces wait to be scored{{ end }}",
        description="{{ if $labels.service }}Traces of {{ $labels.service }} close, and the newest score came"
        " {{ $value | humanizeDuration }} ago."
        "{{ else }}The oldest of what is not scored has waited {{ $value | humanizeDuration }}.{{ end }}"
        " Until it is mended nobody knows how the agents do.",
        page="[[page]]/{{ if $labels.service }}?service={{ $labels.service | urlquery }}{{ end }}",
    ),
    Alert(
        name="JudgeBudgetLow",
        severity="ticket",
        labels=("budget",),
        hold="5m",
        expr=promql.BUDGET_LOW,
        summary="{{ $value | humanizePercentage }} of the judge's budget is left",
        description="Of {{ $labels.budget }} [[ask spanwise_judge_budget_remaining_usd | %.2f]] of"
        " [[ask spanwise_judge_budget_limit_usd | %.2f]] USD are left. When it is spent, judged evaluations are"
        " skipped (reason budget) until the next period.",
        page=PAGE,
    ),
    Alert(
        name="AgentTracesIncomplete",
        severity="ticket",
        labels=("service",),
        hold="30m",
        expr=promql.INCOMPLETE,
        summary="{{ $labels.service }}: traces are cut off, or their spans come too late",
        description="In the last 6 hours"
        ' [[ask sum(increase(spanwise_traces_closed_total{@,reason=~"max_age|max_spans|max_bytes|memory"}[6h]))'
        " | %.0f]]"
        " of [[ask sum(increase(spanwise_traces_closed_total{@}[6h])) | %.0f]] traces closed before their end, and"
        ' [[ask sum(increase(spanwise_late_spans_total{@,action="ignored"}[6h])) | %.0f]] spans came too late.'
        " Their scores are made from a part.",
        page=SERVICE_PAGE,
    ),
    Alert(
        name="AgentSignalsNotDelivered",
        severity="page",
        labels=("sink",),
        hold="5m",
        expr=promql.NOT_DELIVERED,
        summary="Sink {{ $labels.sink }} does not take signals",
        description="The oldest signal that {{ $labels.sink }} has not taken is of"
        " [[ask spanwise_outbox_oldest_timestamp_seconds | humanizeTimestamp]],"
        " [[ask spanwise_outbox_records | %.0f]] wait."
        ' Lost in the last 30 minutes: [[ask sum(increase(spanwise_signals_total{@,result="lost"}[30m])) | %.0f]].',
        page=PAGE,
    ),
)
"""All of them, in the order in which they are printed."""
