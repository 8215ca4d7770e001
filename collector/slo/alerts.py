"""The alerts: names, severities, labels, texts. Data.

A text is written once, in `Words` (`words.py`): a rule file and a notice of our own say the same.
"""

from dataclasses import dataclass

from collector.records.standing import FAULT_WORDS, FAULTS_THAT_PAGE, LOOKED_AT
from collector.slo import expressions as promql
from collector.slo.words import CLOCK, AlertQuery, Text, Words

SCORED = ("service", "agent", "evaluator", "scope")


def agent_page(w: Words) -> str:
    return f"/?service={w.quoted('service')}&agent={w.quoted('agent')}"


def _sessions(w: Words) -> str:
    return f"/sessions?service={w.quoted('service')}&agent={w.quoted('agent')}"


def _failed(since: str) -> Text:
    return lambda w: f"{_sessions(w)}&failed={w.quoted('evaluator')}&since={since}"


def _service_page(w: Words) -> str:
    return f"/?service={w.quoted('service')}"


def _page(_: Words) -> str:
    return "/"


def always(text: str) -> Text:
    """A text that says the same whatever happened."""
    return lambda _: text


def _agent(text: Text) -> Text:
    return lambda w: f"{w.label('agent')} ({w.label('service')}){text(w)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alerting rule."""

    name: str
    severity: Text
    labels: tuple[str, ...]
    """What it carries, beside `severity`."""
    hold: int
    """`for`: the minutes that it holds before it fires."""
    expr: str
    needs_objective: bool = False
    summary: Text
    description: Text
    page: Text
    """Behind the address of the page."""


_PERCENT = "humanizePercentage"
_PAGE = always("page")
_TICKET = always("ticket")


def _window(w: Words) -> str:
    return (
        f"The mean of its newest {w.ask(AlertQuery('spanwise_window_samples'), '%.0f')} sessions is"
        f" {w.ask(AlertQuery('spanwise_window_mean_ratio'), '%.2f')} (95 % bounds"
        f" {w.ask(AlertQuery('spanwise_window_lower_bound_ratio'), '%.2f')} to"
        f" {w.ask(AlertQuery('spanwise_window_upper_bound_ratio'), '%.2f')})."
    )


def _burn(w: Words) -> str:
    return (
        f"The objective is that {w.ask('1 - max(agent:error_budget:ratio{@})', _PERCENT)} pass;"
        f" {w.ask('max(agent:error_budget:ratio{@})', _PERCENT)} may fail."
    )


def _fault(w: Words) -> str:
    tool = w.label("tool")
    return w.when("fault", {fault: words.format(tool=tool) for fault, words in FAULT_WORDS.items()})


def _fault_since(w: Words) -> str:
    def count(family: str, period: str) -> str:
        return w.ask(AlertQuery(f"spanwise_fault_{family}", labels={"period": period}), "%.0f")

    since = w.ask(AlertQuery("spanwise_fault_since_timestamp_seconds"), CLOCK)
    return (
        f"{_fault(w)} in {count('failures', 'since')} of {count('uses', 'since')} sessions since {since},"
        f" in {count('failures', 'before')} of {count('uses', 'before')} before."
    )


def _drop(w: Words) -> str:
    agent = ("service", "agent")

    def cause(row: Words) -> str:
        unknown = "The cause is unknown: no tool, model call or loop fails more than before."
        tool = row.given("tool", f" of {row.label('tool')}")
        known = f"It is explained by the fault {row.label('fault')}{tool}."
        of = row.given("tool", f"uses of {row.label('tool')}", "sessions")
        looked = (
            f"The cause is not known yet: {row.value('%.0f')} of {LOOKED_AT} {of} are looked at."
        )
        return row.when("fault", {"unknown": unknown, "not_known_yet": looked}, known)

    def dropped(row: Words) -> str:
        return f" {row.label('evaluator')} dropped {row.value(CLOCK)}."

    def mean(row: Words) -> str:
        return f" The mean of {row.label('evaluator')} over its window is {row.value('%.2f')}."

    by, scope = ("evaluator",), (*agent, "scope")
    causes = AlertQuery("spanwise_drift_cause", ("fault", "tool"), agent)
    since = AlertQuery("spanwise_drift_since_timestamp_seconds", by, scope)
    means = AlertQuery("spanwise_window_mean_ratio", by, scope, where="spanwise_drift_detected")
    return (
        f"{w.each(causes, cause)}{w.each(since, dropped)}{w.each(means, mean)}{_opinion(w)}"
        " It may be a changed prompt, model or mix of questions: compare three sessions from before with three since."
        " In the first two weeks of an agent it may also be the time of day or of the week."
    )


def _opinion(w: Words) -> str:
    """What a judge says of the drop."""
    agent = ("service", "agent")

    def verdict(row: Words) -> str:
        no_loss = row.above(-1, " The judge sees no loss", " The judge was asked and is undecided")
        return row.above(0, " The judge agrees", no_loss)

    def mean(period: str, text: Text) -> str:
        family, labels = "spanwise_second_opinion_mean_ratio", {"period": period}
        return w.each(AlertQuery(family, ("evaluator",), agent, labels), text)

    before = mean("before", lambda row: f": {row.label('evaluator')} {row.value('%.2f')} before")
    since = mean("since", lambda row: f", {row.value('%.2f')} since")
    sessions = AlertQuery("spanwise_second_opinion_sessions", of=agent)
    over = w.each(sessions, lambda row: f", over {row.value('%.0f')} sessions.")
    no_judge = " No judge is set up: set `judge.model` to get a second opinion on a drop."
    said = w.each(AlertQuery("spanwise_drop_second_opinion", of=agent), verdict, no_judge)
    return f"{said}{before}{since}{over}"


def _runaway(w: Words) -> str:
    repeated = "repeated one tool call with the same result at least 10 times"
    called = "called the model more than 4 times as often as this agent's traces usually do"
    why = w.when("reason", {"repeated_calls": repeated}, called)
    return (
        f"{w.value('%.0f')} open trace{w.above(1, 's')} {why} and still go{w.above(1, '', 'es')} on."
        f" {w.above(1, 'They cost', 'It costs')} until somebody stops {w.above(1, 'them', 'it')}."
    )


def _stale(w: Words) -> str:
    age = w.value("humanizeDuration")
    traffic = f"Traces of {w.label('service')} close, and the newest score came {age} ago."
    waiting = f"The oldest of what is not scored has waited {age}."
    return (
        f"{w.given('service', traffic, waiting)} Until this is fixed, the agents are not measured."
    )


def _incomplete(w: Words) -> str:
    cut = 'sum(increase(spanwise_traces_closed_total{@,reason=~"max_age|max_spans|max_bytes|memory"}[6h]))'
    closed = "sum(increase(spanwise_traces_closed_total{@}[6h]))"
    late = 'sum(increase(spanwise_late_spans_total{@,action="ignored"}[6h]))'
    return (
        f"In the last 6 hours {w.ask(cut, '%.0f')} of {w.ask(closed, '%.0f')} traces closed before their end, and"
        f" {w.ask(late, '%.0f')} spans came too late. Their scores are made from a part."
    )


def _not_delivered(w: Words) -> str:
    oldest = w.ask(AlertQuery("spanwise_outbox_oldest_timestamp_seconds"), CLOCK)
    waiting = w.ask(AlertQuery("spanwise_outbox_records"), "%.0f")
    lost = AlertQuery("spanwise_signals_total", labels={"result": "lost"}, is_increase=True)
    return (
        f"The oldest signal that {w.label('sink')} has not taken is of {oldest}, {waiting} wait."
        f" Lost in the last 30 minutes: {w.ask(lost, '%.0f')}."
    )


def _burning(
    name: str, hold: int, expr: str, within: str, long: tuple[str, str], short: tuple[str, str]
) -> Alert:
    """The budget is spent too fast in two windows, each in PromQL and in words."""
    valid = f"max(agent:quality_valid:increase{long[0]}{{@}})"
    failing = f"max(agent:quality_fail:ratio_rate{short[0]}{{@}})"
    return Alert(
        name=name,
        severity=_PAGE,
        labels=SCORED,
        hold=hold,
        expr=expr,
        needs_objective=True,
        summary=_agent(
            lambda w: f": {w.value(_PERCENT)} of {w.label('evaluator')} failed in {within}"
        ),
        description=lambda w: (
            f"Of {w.ask(valid, '%.0f')} scores in {long[1]} {w.value(_PERCENT)} failed,"
            f" in the last {short[1]} {w.ask(failing, _PERCENT)}. {_burn(w)}"
        ),
        page=_failed(long[0]),
    )


BURNS = (
    _burning(
        "AgentQualityFastBurn",
        2,
        promql.FAST_BURN,
        "the last hour",
        ("1h", "the last hour"),
        ("5m", "5 minutes"),
    ),
    _burning(
        "AgentQualitySlowBurn",
        15,
        promql.SLOW_BURN,
        "six hours",
        ("6h", "the last 6 hours"),
        ("30m", "30 minutes"),
    ),
    Alert(
        name="AgentQualityBudgetDraining",
        severity=_TICKET,
        labels=SCORED,
        hold=60,
        expr=promql.BUDGET_DRAINING,
        needs_objective=True,
        summary=_agent(
            lambda w: (
                f": {w.value(_PERCENT)} of {w.label('evaluator')} failed in three days, more than its objective allows"
            )
        ),
        description=lambda w: (
            f"{w.value(_PERCENT)} of the scores of the last 3 days failed, of the last 6 hours"
            f" {w.ask('max(agent:quality_fail:ratio_rate6h{@})', _PERCENT)}. {_burn(w)}"
        ),
        page=_failed("3d"),
    ),
    Alert(
        name="AgentReliabilityBelowObjective",
        severity=_PAGE,
        labels=SCORED,
        hold=5,
        expr=promql.BELOW_OBJECTIVE,
        needs_objective=True,
        summary=_agent(lambda w: f": {w.label('evaluator')} is below its objective"),
        description=lambda w: (
            f"{_window(w)} Even the upper bound is below the objective of"
            f" {w.ask('1 - max(agent:error_budget:ratio{@})', '%.2f')}."
        ),
        page=_sessions,
    ),
)

FAULT = Alert(
    name="AgentFault",
    severity=lambda w: w.when("fault", dict.fromkeys(sorted(FAULTS_THAT_PAGE), "page"), "ticket"),
    labels=("service", "agent", "fault", "tool"),
    hold=1,
    expr=promql.FAULT,
    summary=_agent(lambda w: f": {_fault(w)}"),
    description=_fault_since,
    page=agent_page,
)
DROP = Alert(
    name="AgentScoreDrop",
    severity=lambda w: w.above(1, "page", "ticket"),
    labels=("service", "agent", "scope"),
    hold=1,
    expr=promql.DROP,
    summary=_agent(lambda w: f": scores of its {w.label('scope')}s are worse than before"),
    description=_drop,
    page=agent_page,
)
RUNAWAY = Alert(
    name="AgentRunaway",
    severity=_PAGE,
    labels=("service", "agent", "reason"),
    hold=0,
    expr=promql.RUNAWAY,
    summary=_agent(lambda w: f" is running away: {w.label('reason')}"),
    description=_runaway,
    page=agent_page,
)
STALE = Alert(
    name="AgentScoresStale",
    severity=_PAGE,
    labels=("service",),
    hold=5,
    expr=promql.STALE,
    summary=lambda w: w.given(
        "service",
        f"{w.label('service')} has traffic and no scores",
        "Traces wait to be scored",
    ),
    description=_stale,
    page=lambda w: f"/{w.given('service', _service_page(w)[1:])}",
)
NOT_DELIVERED = Alert(
    name="AgentSignalsNotDelivered",
    severity=_PAGE,
    labels=("sink",),
    hold=5,
    expr=promql.NOT_DELIVERED,
    summary=lambda w: f"Sink {w.label('sink')} does not take signals",
    description=_not_delivered,
    page=_page,
)

ALERTS = (
    *BURNS,
    FAULT,
    DROP,
    RUNAWAY,
    Alert(
        name="AgentEvaluatorBlind",
        severity=_TICKET,
        labels=("evaluator",),
        hold=10,
        expr=promql.BLIND,
        summary=lambda w: f"{w.label('evaluator')} fails: agents are not measured by it",
        description=lambda w: (
            f"{w.value(_PERCENT)} of its evaluations in the last hour ended in an error. What is"
            " not measured counts neither as good nor as bad."
        ),
        page=_page,
    ),
    STALE,
    Alert(
        name="JudgeBudgetLow",
        severity=_TICKET,
        labels=("budget",),
        hold=5,
        expr=promql.BUDGET_LOW,
        summary=lambda w: f"{w.value(_PERCENT)} of the judge's budget is left",
        description=lambda w: (
            f"Of {w.label('budget')} {w.ask(AlertQuery('spanwise_judge_budget_remaining_usd'), '%.2f')} of"
            f" {w.ask(AlertQuery('spanwise_judge_budget_limit_usd'), '%.2f')} USD are left. When it is spent,"
            " judged evaluations are skipped (reason budget) until the next period."
        ),
        page=_page,
    ),
    Alert(
        name="AgentTracesIncomplete",
        severity=_TICKET,
        labels=("service",),
        hold=30,
        expr=promql.INCOMPLETE,
        summary=lambda w: f"{w.label('service')}: traces are cut off, or their spans come too late",
        description=_incomplete,
        page=_service_page,
    ),
    NOT_DELIVERED,
    Alert(
        name="AgentJudgeByChance",
        severity=_TICKET,
        labels=("service", "agent", "evaluator", "name"),
        hold=60,
        expr=promql.JUDGE_BY_CHANCE,
        summary=_agent(
            lambda w: f": {w.label('evaluator')} is no better than chance beside what people say"
        ),
        description=lambda w: (
            f"Over {w.ask(AlertQuery('spanwise_agreement_samples'), '%.0f')} pairs with {w.label('name')}, the"
            " chance that what people liked has a higher score than what they disliked is"
            f" {w.ask(AlertQuery('spanwise_agreement_rank_ratio'), '%.2f')}, at most {w.value('%.2f')}."
        ),
        page=lambda w: (
            f"/agreement?service={w.quoted('service')}&agent={w.quoted('agent')}&evaluator={w.quoted('evaluator')}"
        ),
    ),
    Alert(
        name="AgentNoticesDropped",
        severity=_TICKET,
        labels=("target",),
        hold=0,
        expr=promql.NOTICES_DROPPED,
        summary=lambda w: f"Notices to {w.label('target')} are dropped",
        description=lambda w: (
            f"{w.value('%.0f')} notices in the last 30 minutes were refused, or could not be sent for an hour."
            " `spanwise notify --test` shows what the target answers."
        ),
        page=_page,
    ),
)
"""All of them, in the order in which they are printed."""
