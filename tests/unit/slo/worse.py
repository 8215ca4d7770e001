"""Scenarios of agents that got worse: something fails, or scores drop."""

from tests.support.promtool import Scenario
from tests.unit.slo.scenarios import (
    DROP,
    FAULT,
    JUDGED,
    RELIABILITY,
    TOOLS,
    counted,
    of,
    page,
    silent,
    ticket,
    window,
)

PLAIN = {"service": "shop", "agent": "clerk"}
SESSIONS = {**PLAIN, "scope": "session"}
TRACES = {**PLAIN, "scope": "trace"}
BROKEN = {**PLAIN, "fault": "tool_failed", "tool": "find_order"}
SERVER = {**PLAIN, "fault": "server_failed", "tool": "shop"}
SLOW_TOOL = {**PLAIN, "fault": "tool_slow", "tool": "find_order"}
SILENT = {**PLAIN, "fault": "no_answer", "tool": ""}
NO_TOOL = {**PLAIN, "fault": "no_answer"}
WORK = {**RELIABILITY, "evaluator": "work_baseline"}
CONSISTENCY = {**RELIABILITY, "evaluator": "agent_consistency"}

FAULTS = (
    Scenario(
        name="a tool fails: one page, at once, until it is over; the drop that it explains says nothing",
        series={
            of("fault_detected", BROKEN): "_x5 1x20 0x60",
            of("drift_detected", RELIABILITY): "0x10 1x30 0x60",
            of("drift_strong", RELIABILITY): "0x15 1x25 0x60",
        },
        fires={
            "4m": {},
            "6m": {FAULT: [page(BROKEN)]},
            "20m": {FAULT: [page(BROKEN)]},
            "30m": {DROP: [page(SESSIONS)]},
            "50m": {},
        },
    ),
    Scenario(
        name="a tool was told before its server fails: its alert goes on, there is no second page",
        series={
            of("fault_detected", BROKEN): "_x5 1x20 0x60",
            of("fault_detected", SERVER): "_x10 1x15 0x60",
            of("fault_told_as_tool", SERVER): "_x10 1x15 0x60",
        },
        fires={
            "6m": {FAULT: [page(BROKEN)]},
            "12m": {FAULT: [page(BROKEN)]},
            "25m": {FAULT: [page(BROKEN)]},
            "40m": {},
        },
    ),
    Scenario(
        name="a server whose tools fail at once is told by its own name",
        series={
            of("fault_detected", SERVER): "_x10 1x15 0x60",
            of("fault_told_as_tool", SERVER): "_x10 0x75",
        },
        fires={"12m": {FAULT: [page(SERVER)]}, "25m": {FAULT: [page(SERVER)]}, "40m": {}},
    ),
    Scenario(
        name="a fault that stands before the drop's minute is over: the drop never fires beside it",
        series={
            of("drift_detected", RELIABILITY): "0x5 1x40",
            of("fault_detected", BROKEN): "_x7 1x20 0x60",
            of("fault_since_timestamp_seconds", BROKEN): "_x7 420x20",
        },
        fires={
            "6m": {},
            "7m": {},
            "8m": {FAULT: [page(BROKEN)]},
            "27m": {FAULT: [page(BROKEN)]},
            "28m": {},
            "29m": {DROP: [ticket(SESSIONS)]},
        },
    ),
    Scenario(
        name="a drop that fires already goes on until its fault fires",
        series={
            of("drift_detected", RELIABILITY): "0x5 1x40",
            of("drift_strong", RELIABILITY): "0x5 1x40",
            of("fault_detected", BROKEN): "_x10 1x20",
            of("fault_since_timestamp_seconds", BROKEN): "_x10 600x20",
        },
        fires={
            "6m": {},
            "7m": {DROP: [page(SESSIONS)]},
            "10m": {DROP: [page(SESSIONS)]},
            "11m": {FAULT: [page(BROKEN)]},
            "25m": {FAULT: [page(BROKEN)]},
        },
    ),
    Scenario(
        name="a slow tool and silent sessions are tickets, and take no drop's place",
        series={
            of("fault_detected", SLOW_TOOL): "1x60",
            of("fault_detected", SILENT): "1x60",
            of("drift_detected", RELIABILITY): "1x60",
        },
        fires={"10m": {FAULT: [ticket(SLOW_TOOL), ticket(NO_TOOL)], DROP: [ticket(SESSIONS)]}},
    ),
    Scenario(
        name="another agent's fault takes no drop's place",
        series={
            of("fault_detected", {**BROKEN, "agent": "other"}): "1x60",
            of("drift_detected", RELIABILITY): "1x60",
        },
        fires={
            "10m": {FAULT: [page({**BROKEN, "agent": "other"})], DROP: [ticket(SESSIONS)]},
        },
    ),
    Scenario(
        name="two replicas and a restart: one alert",
        series={
            of("fault_detected", BROKEN, instance="a"): "1x20 stale",
            of("fault_detected", BROKEN, instance="b"): "_x23 1x30",
            of("fault_detected", BROKEN, instance="c"): "1x20 stale",
        },
        fires={f"{minute}m": {FAULT: [page(BROKEN)]} for minute in (5, 21, 24, 40)},
    ),
)

DROPS = (
    Scenario(
        name="scores fall: a ticket for each scope, however many evaluators fall",
        series={
            of("drift_detected", RELIABILITY): "0x10 1x20 0x60",
            of("drift_detected", CONSISTENCY): "0x10 1x20 0x60",
            of("drift_detected", TOOLS): "0x10 1x20 0x60",
        },
        fires={
            "9m": {},
            "11m": {},
            "12m": {DROP: [ticket(SESSIONS), ticket(TRACES)]},
            "30m": {DROP: [ticket(SESSIONS), ticket(TRACES)]},
            "32m": {},
        },
    ),
    Scenario(
        name="a judge that agrees wakes somebody; where it sees no loss, it is quiet",
        series={
            of("drift_detected", RELIABILITY): "1x100",
            of("drop_second_opinion", PLAIN): "_x10 -1x20 1x20 0x20",
        },
        fires={
            "8m": {DROP: [ticket(SESSIONS)]},
            "25m": {DROP: [ticket(SESSIONS)]},
            "40m": {DROP: [page(SESSIONS)]},
            "60m": {},
        },
    ),
    Scenario(
        name="a strong fall wakes somebody, and is not a ticket beside it",
        series={
            of("drift_detected", RELIABILITY): "0x10 1x50",
            of("drift_strong", RELIABILITY): "0x20 1x20 0x20",
            of("drift_detected", WORK): "0x10 1x50",
        },
        fires={
            "12m": {DROP: [ticket(SESSIONS)]},
            "25m": {DROP: [page(SESSIONS)]},
            "45m": {DROP: [ticket(SESSIONS)]},
        },
    ),
    Scenario(
        name="a fixed release: the old version's series end, the drop clears",
        series={
            of("drift_detected", RELIABILITY): "1x20 0x60",
            of("agent_reliability_ratio", PLAIN, agent_version="1"): "0.2x35 stale",
            of("agent_reliability_ratio", PLAIN, agent_version="2"): "_x15 0.9x60",
            of("version_sessions", PLAIN, agent_version="1"): "30x35 stale",
        },
        fires={"19m": {DROP: [ticket(SESSIONS)]}, "22m": {}, "60m": {}},
    ),
    Scenario(
        name="the agent's series end while it is alarmed",
        series={of("drift_detected", RELIABILITY): "1x20 stale"},
        fires={"19m": {DROP: [ticket(SESSIONS)]}, "30m": {}},
    ),
    Scenario(
        name="a restart is not an end of a drop, and no second page",
        series={
            of("drift_detected", RELIABILITY, instance="a"): "1x20 stale",
            of("drift_strong", RELIABILITY, instance="a"): "1x20 stale",
            of("drift_detected", RELIABILITY, instance="b"): "_x23 1x30",
            of("drift_strong", RELIABILITY, instance="b"): "_x23 1x30",
        },
        fires={f"{minute}m": {DROP: [page(SESSIONS)]} for minute in (19, 21, 22, 23, 24, 40)},
    ),
    Scenario(
        name="two replicas, one of them without the past",
        series={
            of("drift_detected", RELIABILITY, instance="a"): "1x20",
            of("drift_strong", RELIABILITY, instance="a"): "1x20",
            of("drift_detected", RELIABILITY, instance="b"): "0x20",
            of("drift_strong", RELIABILITY, instance="b"): "0x20",
        },
        fires={"10m": {DROP: [page(SESSIONS)]}},
    ),
    Scenario(
        name="another mix of the day: means fall, ranks do not",
        series={
            of("drift_detected", RELIABILITY): "0x60",
            of("drift_progress_ratio", RELIABILITY): "0.9x60",
            of("objective_missed_detected", RELIABILITY): "1x60",
            of("window_mean_ratio", RELIABILITY): "0.9x20 0.4x40",
            **window(RELIABILITY, "0.95x20 0.5x40", "200x60"),
        },
        fires=silent("10m", "30m", "59m"),
    ),
    Scenario(
        name="everything fails, and nobody promised anything",
        series={counted(JUDGED, "fail"): "0+5x200", **window(RELIABILITY, "0.1x200", "200x200")},
        fires=silent("30m", "70m"),
    ),
)
