"""The PromQL of the rules. Pure text.

Everything is aggregated by the labels that an alert has: scraping adds `instance` and `pod`, which differ between
replicas and change with a restart. Counters are read with `rate` and `increase`, so that a reset is not an event.
Gauges that survive a restart are read over five minutes: the gap of a restart neither ends an alert nor restarts its
`for`.
"""

from collections.abc import Mapping

from collector.records.standing import FAULTS_THAT_PAGE
from evaluators.formulas.people_agreement import USELESS

T = "service, agent, evaluator, scope"  # the labels of the families about scores

_FAILED = 'spanwise_evaluations_total{sample="base",outcome="fail"}'
_VALID = 'spanwise_evaluations_total{sample="base",outcome=~"pass|fail"}'
_CUT = 'spanwise_traces_closed_total{reason=~"max_age|max_spans|max_bytes|memory"}'
_ERRORS = 'sum by (evaluator) (increase(spanwise_evaluations_total{outcome="error"}[1h]))'
_JUDGED = (
    'sum by (evaluator) (increase(spanwise_evaluations_total{outcome=~"pass|fail|error"}[1h]))'
)
_COUNTED = 'sum by (service) (increase(spanwise_evaluations_total{outcome=~"pass|fail"}[30m]))'
_UNSCORED = 'sum by (service) (increase(spanwise_evaluations_total{outcome="not_applicable"}[30m]))'
_UNSEEN = (
    'sum by (service) (increase(spanwise_evaluations_skipped_total{reason="low_coverage"}[30m]))'
)


def fail_ratio(window: str) -> str:
    """Failed among passed and failed scores of the random sample; without any there is no ratio.

    Errors, what does not apply and targeted samples count on neither side.
    """
    return f"""\
(
  sum by ({T}) (rate({_FAILED}[{window}]))
  or
  0 * sum by ({T}) (rate({_VALID}[{window}]))
)
/
(sum by ({T}) (rate({_VALID}[{window}])) > 0)"""


def valid_increase(window: str) -> str:
    return f"sum by ({T}) (increase({_VALID}[{window}]))"


def cut_ratio(window: str) -> str:
    cut = f"sum by (service) (increase({_CUT}[{window}]))"
    return f"{cut} / sum by (service) (increase(spanwise_traces_closed_total[{window}]))"


def error_budget(objective: float | None, evaluators: Mapping[str, float]) -> str:
    """1 - objective. An evaluator's own comes first, then what the service exports, then the common one.

    The common one holds for what passes or fails: evaluators that only rank (work_baseline) have no objective
    unless it is set for them.
    """
    own = [
        f"{value:.12g} * group by ({T}) (\n"
        f'    last_over_time({_VALID[:-1]},evaluator="{name}"}}[6h])\n'
        f'    or last_over_time(spanwise_window_samples{{evaluator="{name}"}}[5m])\n'
        "  )"
        for name, value in sorted(evaluators.items())
    ]
    exported = f"max by ({T}) (last_over_time(spanwise_slo_objective_ratio[5m]))"
    common = (
        []
        if objective is None
        else [f"{objective:.12g} * group by ({T}) (last_over_time({_VALID}[6h]))"]
    )
    return "1 - (\n  " + "\n  or\n  ".join([*own, exported, *common]) + "\n)"


BURN_LIMIT_PAGE = "clamp_min(clamp_max(0.6 / agent:error_budget:ratio, 14.4), 1)"
"""How many times the budget has to fail until somebody is woken: 14.4, less where no ratio can come so high.

Never below 1: whoever promised that 40 % pass is not woken while 45 % fail.
"""
BURN_LIMIT_SLOW = "clamp_min(clamp_max(0.35 / agent:error_budget:ratio, 6), 1)"

FAST_BURN = """\
agent:quality_fail:ratio_rate1h > agent:burn_limit_page:ratio * agent:error_budget:ratio
and
agent:quality_fail:ratio_rate5m > agent:burn_limit_page:ratio * agent:error_budget:ratio
and
agent:quality_valid:increase1h >= 20"""
SLOW_BURN = """\
agent:quality_fail:ratio_rate6h > agent:burn_limit_slow:ratio * agent:error_budget:ratio
and
agent:quality_fail:ratio_rate30m > agent:burn_limit_slow:ratio * agent:error_budget:ratio
and
agent:quality_valid:increase6h >= 30"""
BUDGET_DRAINING = f"""\
agent:quality_fail:ratio_rate3d > agent:error_budget:ratio
and
agent:quality_fail:ratio_rate6h > agent:error_budget:ratio
and
{valid_increase("3d")} >= 30"""
DRIFT = f"max by ({T}) (last_over_time(spanwise_drift_detected[5m]))"
DROPPED = "max by (service, agent, scope) (last_over_time(spanwise_drift_detected[5m]))"
STRONG = "max by (service, agent, scope) (last_over_time(spanwise_drift_strong[5m]))"
FAULTS = "max by (service, agent, fault, tool) (last_over_time(spanwise_fault_detected[5m]))"
RUNAWAYS = "max by (service, agent, reason) (spanwise_runaway_traces)"
BUDGET_LEFT = """\
min by (budget) (spanwise_judge_budget_remaining_usd)
/
(max by (budget) (spanwise_judge_budget_limit_usd) > 0)"""
OUTBOX_AGE = "time() - min by (sink) (spanwise_outbox_oldest_timestamp_seconds)"
SCORE_AGE = 'time() - max by (service) (spanwise_last_score_timestamp_seconds{service!="_other"})'
SCORING_AGE = 'max(last_over_time(spanwise_log_lag_seconds{group=~"assembly|scoring"}[5m]))'

BELOW_OBJECTIVE = f"""\
max by ({T}) (last_over_time(spanwise_window_upper_bound_ratio[5m])) < 1 - agent:error_budget:ratio
and
max by ({T}) (last_over_time(spanwise_window_samples[5m])) >= 20"""

_PAGING = "|".join(sorted(FAULTS_THAT_PAGE))
_PAGED = f'spanwise_fault_detected{{fault=~"{_PAGING}"}}[5m]'
_FAULTY = f"max by (service, agent) (last_over_time({_PAGED}) > 0)"
_FAULT_FIRES = f"""\
max by (service, agent) (
    last_over_time({_PAGED}) > 0
    and
    last_over_time({_PAGED} offset 1m) > 0
  )"""
FAULT = f"""\
{FAULTS} > 0
unless on (service, agent, fault, tool)
last_over_time(spanwise_fault_told_as_tool[5m]) > 0"""
_OPINION = "max by (service, agent) (last_over_time(spanwise_drop_second_opinion[5m]))"
_ANY_DROP = f"""\
(
    2 * ({STRONG} > 0 or {DROPPED} > 0 and on (service, agent) {_OPINION} == 1)
    or
    {DROPPED} > 0 unless on (service, agent) {_OPINION} == 0
  )"""
DROP = f"""\
(
  {_ANY_DROP}
  unless on (service, agent)
  {_FAULTY}
)
or
(
  {_ANY_DROP}
  and on (service, agent, scope)
  ALERTS{{alertname="AgentScoreDrop",alertstate="firing"}}
  unless on (service, agent)
  {_FAULT_FIRES}
)"""
"""2: strong, or the judge agrees. Where the judge sees no loss, what is not strong is quiet.

A fault that wakes somebody says more, and says it alone: beside one no drop begins to fire.

One that fires already goes on until the fault fires, so that no end of it is sent before the fault.
"""
RUNAWAY = f"{RUNAWAYS} > 0"
BLIND = f"""\
{_ERRORS} / {_JUDGED} > 0.2
and
{_ERRORS} >= 10
unless
sum by (evaluator) (increase(spanwise_score_lag_seconds_count[1h])) > 4 * {_ERRORS}"""
STALE = f"""\
(
  {SCORE_AGE} > 1800
  and
  sum by (service) (increase(spanwise_traces_closed_total[30m])) > 0
  unless
  {_COUNTED} > 0
  unless
  (
    {_UNSCORED} > 0
    unless
    {_UNSEEN} > 0
  )
)
or
{SCORING_AGE} > 600"""
BUDGET_LOW = f"""\
{BUDGET_LEFT}
< 0.1"""
INCOMPLETE = f"""\
(
  sum by (service) (increase({_CUT}[6h])) >= 5
  and
  {cut_ratio("6h")} > 0.05
)
or
(
  sum by (service) (increase(spanwise_late_spans_total{{action="ignored"}}[6h])) >= 5
  unless
  sum by (service) (increase(spanwise_late_spans_total{{action="ignored"}}[6h]))
  <= 0.05 * sum by (service) (increase(spanwise_traces_closed_total[6h]))
)"""
NOT_DELIVERED = f"""\
(
  {OUTBOX_AGE} > 300
  unless
  max by (sink) (spanwise_outbox_records) == 0
)
or
sum by (sink) (increase(spanwise_signals_total{{result="lost"}}[30m])) > 0"""
JUDGE_BY_CHANCE = f"""\
min by (service, agent, evaluator, name) (
  last_over_time(spanwise_agreement_rank_upper_bound_ratio[5m])
) < {USELESS}"""
NOTICES_DROPPED = 'sum by (target) (increase(spanwise_notices_total{result="dropped"}[30m])) > 0'
