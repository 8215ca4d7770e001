"""Names out of traces as label values: short ones, and no junk keeps real agents from having theirs."""

from pathlib import Path

import pytest

from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SOON = ("windows.trace.root_grace=100ms", "embedder.kind=none")
LONGEST = 128
JUNK = 80


def test_names_are_cut_where_a_trace_is_read(tmp_path: Path) -> None:
    long = "n" * 1_000_000
    made = span("s", "Where?")
    for each in made.attributes:
        if each.key == "gen_ai.agent.name":
            each.value.string_value = f"agent {long}"
    made.attributes.add(key="gen_ai.agent.version").value.string_value = f"1 {long}"
    with Service(tmp_path / "data", *SOON) as service:
        send(service.grpc, request(f"service {long}", [made]))
        service.wait_for(
            "it is scored", lambda: trace_id("s") in service.scored_traces(), timeout=30
        )
        service.wait_for("it is counted", lambda: service.total("spanwise_score_ratio_count"))

        size = len(service.text("/metrics"))
        signal = service.signals()[0]

    assert size < 1_000_000
    assert len(signal["service"]) <= LONGEST
    assert len(signal["agent"]) <= LONGEST
    assert len(signal["agent_version"]) <= LONGEST


def test_one_off_services_do_not_take_the_slots_of_those_that_report(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SOON) as service:
        for number in range(JUNK):
            send(service.grpc, asked(f"junk-{number}", "x", service=f"junk-{number}"))
        junk = {trace_id(f"junk-{number}") for number in range(JUNK)}
        service.wait_for("junk is scored", lambda: junk <= service.scored_traces(), timeout=30)

        for number in range(12):
            send(service.grpc, asked("real", "Where?", number=number, service="real-bot"))
        real = {trace_id("real", number) for number in range(12)}
        service.wait_for("real is scored", lambda: real <= service.scored_traces(), timeout=30)

        def has_a_name() -> bool:
            of_agent = service.total("spanwise_window_samples", 'agent="desk"')
            return bool(of_agent and service.total("spanwise_evaluations_total", "real-bot"))

        service.wait_for("the agent that reports has its series", has_a_name, timeout=15)
        assert service.total("spanwise_traces_closed_total", "real-bot")
