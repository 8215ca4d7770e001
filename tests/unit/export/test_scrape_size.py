"""How large a scrape is: with many agents only what alerts and headlines read has its series."""

import random
from collections import Counter
from typing import Any

from collector.base.slots import FEW
from collector.base.telemetry import OTHER
from collector.config.load import load
from collector.config.plan import plan_from
from collector.watch.windows.targets import MAX_DETAILED_AGENTS
from evaluators.formulas.past_limits import PastLimits
from evaluators.model import Tokens
from evaluators.registry import Registry
from tests.support.publisher import Publisher, closed_trace
from tests.support.signals import BASE, signal

LIMIT = 410_000
"""Bytes of the text format: 403,713 with the families that there are."""
AGENTS = 60
MEASURED = {"coherence", "cost", "latency", "token_usage"}
"""They have no score by default."""
HEADLINE = "agent_reliability"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


async def scrape_of(agents: int, objective: float | None = None) -> Publisher:
    """Agents that ran every default evaluator: each has passed, and failed or had nothing to judge."""
    plan = plan_from(load([], {}, ()), registry=Registry.discover())
    chosen = random.Random(7)
    publisher = Publisher(objectives=lambda _: objective, drops=PastLimits(least=1))
    for number in range(agents):
        name = f"agent-{number:02}"
        names = {"service": f"service-{number:02}", "agent": name, "agent_version": "1.4.2"}
        tokens = Tokens(input=900, output=50, cached=100)
        trace = closed_trace(name, 1, names["service"], tokens=tokens, cost_usd=0.1)
        await publisher.close_traces(trace)
        for each in (*plan.trace, *plan.session, *plan.ranked):
            trace_id = "t" if each.spec.scope == "trace" else None
            is_measured = each.spec.name in MEASURED
            for turn, drawn in enumerate((1.0, chosen.choice([0.1, None]))):
                score = None if is_measured else drawn
                fields: dict[str, Any] = {**names, "evaluator": each.spec.name}
                if is_measured:
                    fields |= {"outcome": "measured", "success": None}
                elif score is None:
                    fields |= {"outcome": "not_applicable"}
                elif each.threshold is None:
                    fields |= {"threshold": None, "success": None}
                subject = f"{number}-{turn}"
                of = signal(f"s-{subject}", trace_id and f"t-{subject}", score=score, **fields)
                await publisher.publish(of)
    publisher.log.clock.now += publisher.limits.settle + 1
    await publisher.step()
    for watch in publisher.exporter._drops:  # each has a past that is long enough
        for number in range(PastLimits().least):
            watch.past.feed(str(number), 0.5, publisher.log.clock.now, "1.4.2")
    publisher.log.clock.now += 1000
    await publisher.publish(signal("later", None, at=BASE + 1000, agent=OTHER))
    return publisher


def size(publisher: Publisher, accept: str = "text/plain") -> int:
    body, _ = publisher.telemetry.exposition(accept)
    return len(body)


def by_family(publisher: Publisher) -> str:
    body, _ = publisher.telemetry.exposition("text/plain")
    sizes: Counter[str] = Counter()
    for line in body.decode().splitlines():
        sizes[line.partition("{")[0]] += len(line) + 1
    return "\n".join(f"{count:>8} {name}" for name, count in sizes.most_common(12))


async def test_a_scrape_of_sixty_agents_stays_below_its_limit() -> None:
    publisher = await scrape_of(AGENTS)

    said = f"text {size(publisher)}, OpenMetrics {size(publisher, OPENMETRICS)} bytes"
    assert size(publisher) < LIMIT, f"{said}\n{by_family(publisher)}"
    assert size(publisher, OPENMETRICS) < 1.15 * LIMIT, said


async def test_few_agents_have_every_histogram_and_window_below_the_same_limit() -> None:
    publisher = await scrape_of(MAX_DETAILED_AGENTS)

    exported = publisher.gauges()
    windows = {labels[2] for name, labels in exported if name == "spanwise_window_mean_ratio"}
    assert {"tool_correctness", "agent_reliability", "work_baseline"} <= windows
    body, _ = publisher.telemetry.exposition(OPENMETRICS)
    assert b'spanwise_score_ratio_bucket{agent="agent-00",evaluator="tool_correctness"' in body
    assert size(publisher) < LIMIT, by_family(publisher)


async def test_many_agents_keep_what_is_alerted_on_and_the_way_to_the_trace() -> None:
    publisher = await scrape_of(MAX_DETAILED_AGENTS + 1)

    drifts = [labels[2] for name, labels in publisher.gauges() if name == "spanwise_drift_detected"]
    assert drifts.count("work_baseline") == MAX_DETAILED_AGENTS + 1
    assert "spanwise_drift_progress_ratio" not in {name for name, _ in publisher.gauges()}
    windows = {labels[2] for name, labels in publisher.gauges() if "_window_" in name}
    assert windows == {"agent_reliability", "agent_consistency"}
    body, _ = publisher.telemetry.exposition(OPENMETRICS)
    lines = body.decode().splitlines()
    assert not [line for line in lines if line.startswith("spanwise_score_ratio_")]
    failed = [line for line in lines if 'outcome="fail"' in line and 'scope="trace"' in line]
    assert failed
    assert all(" # {" in line and "trace_id=" in line.partition(" # ")[2] for line in failed)
    for labels in (("service-00", "agent-00"), ("service-12", "agent-12")):
        counted = dict(zip(("service", "agent"), labels, strict=True))
        assert publisher.value(
            "evaluations_total", evaluator="tool_correctness", outcome="pass", **counted
        )
        assert publisher.value("last_score_timestamp_seconds", evaluator=HEADLINE, **counted)


async def test_an_objective_keeps_histogram_and_window_however_many_agents_there_are() -> None:
    publisher = await scrape_of(MAX_DETAILED_AGENTS + 1, objective=0.9)

    for agent in ("agent-00", "agent-12"):
        labels = {"agent": agent, "evaluator": "tool_correctness"}
        assert publisher.value("window_upper_bound_ratio", **labels) is not None
    assert publisher.value("score_ratio_count", agent="agent-12", evaluator="tool_correctness")


async def test_an_agent_without_headlines_has_the_windows_that_it_has() -> None:
    publisher = await scrape_of(MAX_DETAILED_AGENTS)
    await publisher.close_traces(*(closed_trace("bare", n) for n in range(FEW)))

    await publisher.publish(signal("s", "t", agent="bare"))

    assert publisher.value("window_samples", agent="bare", evaluator="tool_correctness") == 1
    assert publisher.value("window_samples", agent="agent-00", evaluator="tool_correctness") is None
