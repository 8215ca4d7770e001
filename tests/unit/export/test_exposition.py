"""The exposition is clean under promtool, and its labels name no person and no trace."""

import asyncio
import subprocess

import pytest

from evaluators.model import Tokens
from tests.support.promtool import promtool
from tests.support.publisher import SHORT, Publisher, closed_trace
from tests.support.signals import failed, signal, skipped


@pytest.fixture
async def publisher() -> Publisher:
    found = Publisher(drops=SHORT)
    await found.publish(
        signal(trace="a", score=0.2),
        failed(trace="b"),
        skipped(trace="c"),
        signal("s", None, score=0.8),
        signal("s", None, score=0.7, evaluator="agent_consistency"),
    )
    await found.publish(signal(trace="a", score=0.9, revision=1), first=False)
    for number in range(20):
        await found.publish(signal(f"{number}", None, score=0.9 - (number > 9) / 2))
        found.log.clock.now += 1
    await found.close_traces(closed_trace("planner", 1, cost_usd=0.1, tokens=Tokens(input=5)))
    found.telemetry.label_overflow.labels("agent").inc()
    return found


@pytest.mark.process
async def test_promtool_has_nothing_to_say(publisher: Publisher) -> None:
    body, content_type = publisher.telemetry.exposition("text/plain")

    done = await asyncio.to_thread(
        subprocess.run,
        [promtool(), "check", "metrics"],
        input=body,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    assert content_type.startswith("text/plain")


async def test_no_label_names_a_single_trace_or_person(publisher: Publisher) -> None:
    allowed = {
        *("service", "agent", "agent_version", "evaluator", "scope", "sample", "outcome"),
        *("reason", "le", "sink", "result", "label", "type", "topic", "fault", "tool"),
    }

    found = {
        label
        for metric in publisher.telemetry.registry.collect()
        if metric.name.startswith("spanwise_")
        for sample in metric.samples
        for label in sample.labels
    }

    assert found <= allowed


async def test_the_text_format_has_no_exemplars(publisher: Publisher) -> None:
    body, _ = publisher.telemetry.exposition("text/plain")

    assert b" # {" not in body
