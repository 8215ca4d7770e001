"""Scenarios for rules with an objective of 0.9, of 0.95 for tool_correctness, of 0.3 for work_baseline."""

from tests.support.promtool import Scenario
from tests.unit.slo.scenarios import (
    BELOW,
    DRAINING,
    FAST,
    JUDGED,
    NAN,
    RELIABILITY,
    SLOW,
    TOO_MANY_ERRORS,
    TOOLS,
    counted,
    of,
    page,
    silent,
    ticket,
    window,
)

EXPORTED = {f"0.{part}": {**JUDGED, "agent": f"agent-{part}"} for part in ("80", "90", "95")}
RANKED = {**RELIABILITY, "evaluator": "work_baseline"}

BURNING = {FAST: [page(JUDGED)], SLOW: [page(JUDGED)]}
PODS = ("a", "b")


def exported(failing: int) -> dict[str, str]:
    """Scores of agents whose objectives the service exports, and how many of a hundred a minute fail."""
    return {
        **{
            of("slo_objective_ratio", each): f"{promised}x200"
            for promised, each in EXPORTED.items()
        },
        **{counted(each, "fail"): f"0+{failing}x200" for each in EXPORTED.values()},
        **{counted(each, "pass"): f"0+{100 - failing}x200" for each in EXPORTED.values()},
    }


SCENARIOS = (
    Scenario(
        name="everything fails, where 14.4 budgets would be 144 %",
        series={counted(JUDGED, "fail"): "0+1x200", counted(JUDGED, "pass"): "0x200"},
        fires={
            "15m": {},
            "30m": {FAST: [page(JUDGED)]},
            "70m": BURNING,
            "95m": {**BURNING, DRAINING: [ticket(JUDGED)]},
        },
        values={
            "60m": {
                "sum(agent:quality_fail:ratio_rate5m)": 1,
                "sum(agent:quality_fail:ratio_rate3d)": 1,
                "round(sum(agent:error_budget:ratio), 0.001)": 0.1,
                "round(sum(agent:burn_limit_page:ratio), 0.001)": 6,
                "round(sum(agent:burn_limit_slow:ratio), 0.001)": 3.5,
            }
        },
    ),
    Scenario(
        name="fixed an hour ago: the long window still burns, the short one does not",
        series={
            counted(JUDGED, "fail"): "0+4x90 360x100",
            counted(JUDGED, "pass"): "0x90 0+4x100",
        },
        fires={
            "90m": {**BURNING, DRAINING: [ticket(JUDGED)]},
            "102m": {SLOW: [page(JUDGED)], DRAINING: [ticket(JUDGED)]},
        },
    ),
    Scenario(
        name="half fails: no fast burn, a slow one",
        series={counted(JUDGED, "fail"): "0+1x200", counted(JUDGED, "pass"): "0+1x200"},
        fires={
            "55m": {SLOW: [page(JUDGED)]},
            "80m": {SLOW: [page(JUDGED)], DRAINING: [ticket(JUDGED)]},
        },
    ),
    Scenario(
        name="the judge is down: all errors",
        series={
            counted(JUDGED, "error"): "0+2x200",
            counted(JUDGED, "pass"): "40x200",
            counted(JUDGED, "fail"): "4x200",
        },
        fires={"30m": TOO_MANY_ERRORS},
    ),
    Scenario(
        name="errors beside failures count on neither side",
        series={
            counted(JUDGED, "error"): "0+30x60",
            counted(JUDGED, "fail"): "0+7x60",
            counted(JUDGED, "pass"): "0+3x60",
        },
        fires={"50m": {**BURNING, **TOO_MANY_ERRORS}},
    ),
    Scenario(
        name="ten bad minutes after an hour of good ones",
        series={
            counted(JUDGED, "fail"): "0x80 0+9x10",
            counted(JUDGED, "pass"): "0+9x80 720x10",
        },
        fires=silent("85m", "89m"),
    ),
    Scenario(
        name="more failed in three days than may, but not in the last six hours",
        series={
            counted(JUDGED, "fail"): "0+9x10 90x400",
            counted(JUDGED, "pass"): "0x10 0+1x400",
        },
        fires=silent("374m"),
    ),
    Scenario(
        name="three of four fail: too few",
        series={counted(JUDGED, "fail"): "0 1 2 3x200", counted(JUDGED, "pass"): "0 0 1x200"},
        fires=silent("4m", "20m", "40m", "65m"),
    ),
    Scenario(
        name="nine errors, and then a fifth of many",
        series={
            counted(JUDGED, "error"): "0 9x30 9+1x90",
            counted(JUDGED, "pass"): "0x30 0+5x90",
        },
        fires=silent("29m", "100m"),
    ),
    Scenario(
        name="an evaluator without a threshold: its scores are not counted as passed, its errors are few",
        series={
            counted(RANKED, "error"): "0+0.5x90",
            of(
                "score_lag_seconds_count", {"evaluator": "work_baseline", "scope": "session"}
            ): "0+20x90",
        },
        fires=silent("40m", "80m"),
    ),
    Scenario(
        name="targeted samples all fail, nothing else does",
        series={
            counted(JUDGED, "fail", "targeted"): "0+9x200",
            counted(JUDGED, "pass"): "0+2x200",
            counted(JUDGED, "not_applicable"): "0+9x200",
            of("evaluations_skipped_total", JUDGED, reason="budget"): "0+9x200",
        },
        fires=silent("30m", "70m"),
        values={"70m": {"sum(agent:quality_fail:ratio_rate1h)": 0}},
    ),
    Scenario(
        name="one of ten fails, at 0.95",
        series={counted(TOOLS, "fail"): "0+1x200", counted(TOOLS, "pass"): "0+9x200"},
        fires={"50m": {}, "75m": {DRAINING: [ticket(TOOLS)]}},
    ),
    Scenario(
        name="one of ten fails, at 0.9: as promised",
        series={counted(JUDGED, "fail"): "0+1x200", counted(JUDGED, "pass"): "0+9.1x200"},
        fires=silent("50m", "75m"),
    ),
    Scenario(
        name="what the service exports comes before the common objective: 32 % fail at 0.8, 0.9, 0.95",
        series=exported(32),
        fires={
            "50m": {SLOW: [page(EXPORTED["0.95"])]},
            "75m": {
                SLOW: [page(EXPORTED["0.95"])],
                DRAINING: [ticket(each) for each in EXPORTED.values()],
            },
        },
    ),
    Scenario(
        name="less is promised than fails: at 0.4 half of it may fail, 70 % may not",
        series={
            of("slo_objective_ratio", JUDGED): "0.4x200",
            counted(JUDGED, "fail"): "0+45x60 2700+70x60",
            counted(JUDGED, "pass"): "0+55x60 3300+30x60",
        },
        fires={"60m": {}, "119m": {FAST: [page(JUDGED)]}},
    ),
    Scenario(
        name="and 70 % fail",
        series=exported(70),
        fires={
            "40m": {
                FAST: [page(each) for each in EXPORTED.values()],
                SLOW: [page(each) for each in EXPORTED.values()],
            }
        },
    ),
    Scenario(
        name="an objective by name comes before what the service exports",
        series={
            of("slo_objective_ratio", TOOLS): "0.5x200",
            counted(TOOLS, "fail"): "0+1x200",
            counted(TOOLS, "pass"): "0+9x200",
        },
        fires={"75m": {DRAINING: [ticket(TOOLS)]}},
        values={"60m": {"round(sum(agent:error_budget:ratio), 0.001)": 0.05}},
    ),
    Scenario(
        name="two replicas: one alert, the share over both",
        series={
            **{
                counted(JUDGED, outcome, instance=pod, pod=pod): values
                for pod in PODS
                for outcome, values in (("fail", "0+8x200"), ("pass", "0+2x200"))
            },
            **{
                of("slo_objective_ratio", each, instance=pod): "0.9x200"
                for pod in PODS
                for each in (JUDGED, RELIABILITY)
            },
            **window(RELIABILITY, "0.7x200", "50x200", instance="a"),
            **window(RELIABILITY, "0.7x200", "40x200", instance="b"),
        },
        fires={"50m": {**BURNING, BELOW: [page(RELIABILITY)]}},
    ),
    Scenario(
        name="a restart: counters begin again, gauges are away for three minutes",
        series={
            counted(JUDGED, "fail", instance="a"): "0+8x50 _x100",
            counted(JUDGED, "pass", instance="a"): "0+2x50 _x100",
            counted(JUDGED, "fail", instance="b"): "_x53 0+8x100",
            counted(JUDGED, "pass", instance="b"): "_x53 0+2x100",
            of("slo_objective_ratio", JUDGED, instance="a"): "0.9x50 stale",
            of("slo_objective_ratio", JUDGED, instance="b"): "_x53 0.9x100",
            **window(RELIABILITY, "0.7x50 stale", "50x50 stale", instance="a"),
            **window(RELIABILITY, "_x53 0.7x100", "_x53 50x100", instance="b"),
            of("slo_objective_ratio", RELIABILITY, instance="a"): "0.9x50 stale",
            of("slo_objective_ratio", RELIABILITY, instance="b"): "_x53 0.9x100",
        },
        fires={
            time: {**BURNING, BELOW: [page(RELIABILITY)]}
            for time in ("49m", "52m", "54m", "57m", "60m")
        },
    ),
    Scenario(
        name="counters are reset while all is well",
        series={counted(JUDGED, "fail"): "0x30 0x90", counted(JUDGED, "pass"): "5000+4x30 0+4x90"},
        fires=silent("29m", "32m", "60m", "75m"),
    ),
    Scenario(
        name="first seen with a long history of failures",
        series={counted(JUDGED, "fail"): "_x10 900x120", counted(JUDGED, "pass"): "_x10 100x120"},
        fires=silent("11m", "30m", "75m"),
    ),
    Scenario(
        name="the window is certainly below, perhaps below, below with few sessions",
        series={
            **window(RELIABILITY, "0.89x60", "20x60"),
            **window({**RELIABILITY, "agent": "fine"}, "0.91x60", "200x60"),
            **window({**RELIABILITY, "agent": "new"}, "0.2x60", "19x60"),
            **{
                of("slo_objective_ratio", {**RELIABILITY, "agent": agent}): "0.9x60"
                for agent in ("clerk", "fine", "new")
            },
        },
        fires={"4m": {}, "20m": {BELOW: [page(RELIABILITY)]}},
    ),
    Scenario(
        name="the common objective holds for what passes or fails, not for what only ranks",
        series={
            **window(RELIABILITY, "0.5x60", "50x60"),
            counted(RELIABILITY, "pass"): "3x60",
            **window({**RELIABILITY, "evaluator": "task_agreement"}, "0.5x60", "50x60"),
            **window(RANKED, "0.5x60", "50x60"),
        },
        fires={"20m": {BELOW: [page(RELIABILITY)]}},
    ),
    Scenario(
        name="below by an objective of its own, of an evaluator that only ranks",
        series=window(RANKED, "0.25x60", "50x60"),
        fires={"20m": {BELOW: [page(RANKED)]}},
    ),
    Scenario(
        name="not a number, a part of the scrape, an objective that went away",
        series={
            **window(RELIABILITY, NAN, "50x60"),
            of("slo_objective_ratio", RELIABILITY): "0.9x60",
            **window({**RELIABILITY, "agent": "half"}, "0.1x60", "_x60"),
            of("slo_objective_ratio", {**RELIABILITY, "agent": "half"}): "0.9x60",
            **window({**RELIABILITY, "agent": "freed"}, "0.1x60", "50x60"),
            of("slo_objective_ratio", {**RELIABILITY, "agent": "freed"}): NAN,
        },
        fires=silent("20m", "50m"),
    ),
)
