"""Scenarios for the alerts that need no objective."""

from tests.support.promtool import Scenario
from tests.unit.slo import worse
from tests.unit.slo.scenarios import (
    BUDGET,
    BY_CHANCE,
    DROPPED,
    INCOMPLETE,
    JUDGED,
    NAN,
    RELIABILITY,
    RUNAWAY,
    STALE,
    TOO_MANY_ERRORS,
    TOOLS,
    UNDELIVERED,
    counted,
    of,
    page,
    silent,
    ticket,
)

SHOP = {"service": "shop"}
PLAIN = {"service": "shop", "agent": "clerk"}
LOOPS = {**PLAIN, "reason": "repeated_calls"}
CALLS = {**PLAIN, "reason": "model_calls"}
KAFKA = {"sink": "kafka"}
DAY = {"budget": "usd_per_day"}
SCORING, JUDGING = ({"group": each, "topic": "traces"} for each in ("scoring", "judging"))
SCORED = of("last_score_timestamp_seconds", TOOLS)


def closed(service: str, reason: str = "root_ended") -> str:
    """Traces that close."""
    return of("traces_closed_total", {"service": service}, reason=reason)


ABSENT = (
    Scenario(
        name="no number and no series",
        series={
            of("drift_detected", RELIABILITY): NAN,
            of("runaway_traces", LOOPS): NAN,
            of("outbox_oldest_timestamp_seconds", KAFKA): NAN,
            of("judge_budget_remaining_usd", DAY): NAN,
            of("judge_budget_limit_usd", DAY): "10x60",
            of("log_lag_seconds", SCORING): NAN,
            SCORED: NAN,
            closed("shop"): "0+1x60",
        },
        fires=silent("10m", "59m"),
    ),
)

RUNAWAYS = (
    Scenario(
        name="a loop: at once, until it closes",
        series={
            of("runaway_traces", LOOPS, instance="a"): "0x5 1x10 0x10",
            of("runaway_traces", CALLS, instance="a"): "_x8 2x5 stale",
        },
        fires={
            "4m": {},
            "6m": {RUNAWAY: [page(LOOPS)]},
            "10m": {RUNAWAY: [page(LOOPS), page(CALLS)]},
            "15m": {RUNAWAY: [page(LOOPS)]},
            "20m": {},
        },
    ),
)

UNKNOWN = (
    Scenario(
        name="an evaluator fails in three of ten; in one of ten",
        series={
            counted(JUDGED, "error", instance="a"): "0+3x90",
            counted(JUDGED, "pass", instance="b"): "0+7x90",
            counted(TOOLS, "error"): "0+1x90",
            counted(TOOLS, "pass"): "0+9x90",
        },
        fires={"8m": {}, "30m": TOO_MANY_ERRORS},
    ),
    Scenario(
        name="the judge is back",
        series={
            counted(JUDGED, "error"): "0+1x30 30x120",
            counted(JUDGED, "pass"): "0x30 0+1x120",
        },
        fires={"29m": TOO_MANY_ERRORS, "100m": {}},
    ),
    Scenario(
        name="traces close, and nothing is scored",
        series={
            SCORED: "0+60x20 1200x90",
            closed("shop"): "0+2x110",
            counted(TOOLS, "error"): "1x110",
        },
        fires={"49m": {}, "60m": {STALE: [page(SHOP)]}},
    ),
    Scenario(
        name="as well with a second process, and until scores come again",
        series={
            of("last_score_timestamp_seconds", TOOLS, instance="a"): "0x60 3600+60x30",
            of("last_score_timestamp_seconds", JUDGED, instance="b"): "0x90",
            closed("shop"): "0+1x90",
        },
        fires={"40m": {STALE: [page(SHOP)]}, "62m": {}},
    ),
    Scenario(
        name="no traffic at night; another service never had a score; a third lost its name",
        series={
            SCORED: "0+60x20 1200x90",
            closed("shop"): "0+2x20 40x90",
            closed("plain-web"): "0+5x110",
            of("last_score_timestamp_seconds", {**TOOLS, "service": "_other"}): "0x110",
            closed("_other"): "0+5x110",
        },
        fires=silent("40m", "60m", "100m"),
    ),
    Scenario(
        name="what closes is not an agent's turn: health checks in the night",
        series={
            SCORED: "0x110",
            closed("shop"): "0+2x110",
            counted(TOOLS, "not_applicable"): "0+2x110",
        },
        fires=silent("40m", "100m"),
    ),
    Scenario(
        name="sessions have too little content for a score, their traces have scores",
        series={
            of("last_score_timestamp_seconds", RELIABILITY): "0x110",
            closed("shop"): "0+2x110",
            counted(TOOLS, "pass"): "0+2x110",
            counted(JUDGED, "not_applicable"): "0+2x110",
            of("evaluations_skipped_total", RELIABILITY, reason="low_coverage"): "0+1x110",
        },
        fires=silent("60m", "100m"),
    ),
    Scenario(
        name="the content is gone: turns without a score",
        series={
            SCORED: "0x110",
            closed("shop"): "0+2x110",
            counted(TOOLS, "not_applicable"): "0+2x110",
            of("evaluations_skipped_total", RELIABILITY, reason="low_coverage"): "0+1x110",
        },
        fires={"60m": {STALE: [page(SHOP)]}},
    ),
    Scenario(
        name="scoring is ten minutes behind; so is judging, which is another matter",
        series={
            of("log_lag_seconds", SCORING, instance="a"): "0+60x30",
            of("log_lag_seconds", SCORING, instance="b"): "0x30",
            of("log_lag_seconds", JUDGING): "9999x60",
        },
        fires={"10m": {}, "14m": {}, "20m": {STALE: [{"severity": "page"}]}},
    ),
    Scenario(
        name="scoring is behind, and what it lags is not known for a while",
        series={of("log_lag_seconds", SCORING): "700x4 _x3 700x10 0x20"},
        fires={
            "6m": {STALE: [{"severity": "page"}]},
            "18m": {STALE: [{"severity": "page"}]},
            "20m": {},
        },
    ),
    Scenario(
        name="no worker can start: spans wait to become traces, and nothing waits for scoring",
        series={
            of("log_lag_seconds", {"group": "assembly", "topic": "spans"}): "0+60x30",
            of("log_lag_seconds", SCORING): "0x30",
        },
        fires={"10m": {}, "20m": {STALE: [{"severity": "page"}]}},
    ),
    Scenario(
        name="the judge's money is nearly spent, and spent",
        series={
            of("judge_budget_remaining_usd", DAY, instance="a"): "1.1x20 0.9x20 0x20",
            of("judge_budget_limit_usd", DAY, instance="a"): "10x60",
        },
        fires={
            "19m": {},
            "30m": {BUDGET: [ticket(DAY)]},
            "59m": {BUDGET: [ticket(DAY)]},
        },
    ),
    Scenario(
        name="no limit, a limit of nothing",
        series={
            of("judge_budget_remaining_usd", DAY): "0x60",
            of("judge_budget_remaining_usd", {"budget": "none"}): "-1x60",
            of("judge_budget_limit_usd", {"budget": "none"}): "0x60",
        },
        fires=silent("30m"),
    ),
)

DELIVERY = (
    Scenario(
        name="one of ten is cut off, one of fifty, one of three of a small service",
        series={
            closed("shop"): "0+9x120",
            closed("shop", "memory"): "0+1x120",
            closed("fine"): "0+49x120",
            closed("fine", "max_age"): "0+1x120",
            closed("small"): "0 1 2x120",
            closed("small", "max_spans"): "0 1x120",
            closed("idle", "idle"): "0+1x120",
        },
        fires={"20m": {}, "60m": {INCOMPLETE: [ticket(SHOP)]}},
    ),
    Scenario(
        name="spans come too late; a few do",
        series={
            closed("shop"): "0+9x120",
            of("late_spans_total", SHOP, action="ignored"): "0+1x120",
            of("late_spans_total", SHOP, action="revised"): "0+9x120",
            closed("fine"): "0+50x120",
            closed("small"): "0+0.1x120",
            of("late_spans_total", {"service": "small"}, action="ignored"): "0 1 2x120",
            of("late_spans_total", {"service": "fine"}, action="ignored"): "0+1x120",
            of("late_spans_total", {"service": "fine"}, action="duplicate"): "0+50x120",
        },
        fires={"60m": {INCOMPLETE: [ticket(SHOP)]}},
    ),
    Scenario(
        name="a sink is away for half an hour",
        series={
            of("outbox_oldest_timestamp_seconds", KAFKA): "_x10 600x30 stale",
            of("outbox_records", KAFKA): "0x10 5+1x30 0x20",
            of("signals_total", KAFKA, result="retried"): "0+1x60",
            of("signals_total", KAFKA, result="lost"): "0x60",
        },
        fires={
            "14m": {},
            "18m": {},
            "25m": {UNDELIVERED: [page(KAFKA)]},
            "39m": {UNDELIVERED: [page(KAFKA)]},
            "42m": {},
        },
    ),
    Scenario(
        name="an empty outbox, as it is and as it was before",
        series={
            of("outbox_records", KAFKA): "0x60",
            of("outbox_records", {"sink": "jsonl"}): "0x60",
            of("outbox_oldest_timestamp_seconds", {"sink": "jsonl"}): "0x60",
            of("signals_total", KAFKA, result="acked"): "0+9x60",
            of("signals_total", KAFKA, result="lost"): "7x60",
        },
        fires=silent("10m", "59m"),
    ),
    Scenario(
        name="how many wait is not known, only since when",
        series={of("outbox_oldest_timestamp_seconds", KAFKA): "0x60"},
        fires={"4m": {}, "20m": {UNDELIVERED: [page(KAFKA)]}},
    ),
    Scenario(
        name="busy, and never more than minutes behind",
        series={of("outbox_oldest_timestamp_seconds", KAFKA): "1+60x60"},
        fires=silent("10m", "59m"),
    ),
    Scenario(
        name="signals are lost",
        series={of("signals_total", KAFKA, result="lost", instance="a"): "0x10 3x90"},
        fires={"9m": {}, "20m": {UNDELIVERED: [page(KAFKA)]}, "60m": {}},
    ),
)

NOTICES = (
    Scenario(
        name="notices of one target are dropped, another's are only tried again",
        series={
            of("notices_total", {"target": "chat"}, result="dropped"): "0x10 3x90",
            of("notices_total", {"target": "oncall"}, result="dropped"): "0x100",
            of("notices_total", {"target": "oncall"}, result="retried"): "0+1x100",
        },
        fires={"9m": {}, "12m": {DROPPED: [ticket({"target": "chat"})]}, "60m": {}},
    ),
)

_JUDGED = {"service": "shop", "agent": "desk", "evaluator": "hallucination", "name": "thumb"}
AGREEMENT = (
    Scenario(
        name="a judge agrees with people no better than chance, another one clearly does",
        series={
            of("agreement_rank_upper_bound_ratio", _JUDGED): "0.58x200",
            of("agreement_rank_upper_bound_ratio", {**_JUDGED, "name": "stars"}): "0.9x200",
        },
        fires={
            "59m": {},
            "61m": {BY_CHANCE: [ticket(_JUDGED)]},
            "120m": {BY_CHANCE: [ticket(_JUDGED)]},
        },
    ),
)

SCENARIOS = (
    *worse.FAULTS,
    *worse.DROPS,
    *ABSENT,
    *RUNAWAYS,
    *UNKNOWN,
    *DELIVERY,
    *AGREEMENT,
    *NOTICES,
)
