"""A judge that answers rubbish, then none at all: no session has a score anywhere, and everything says why."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from collector.commands.signal_table import SignalTable
from collector.config.tree import Config
from tests.support import agents
from tests.support.command import Ended, evaluated, settings, spanwise
from tests.support.openai_server import OpenAiServer
from tests.support.recorded_signals import signals_of
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
RUBBISH, DEAD, BLIND = "rubbish", "dead", "blind"
HEADLINES = ("agent_reliability", "agent_consistency")
SESSIONS = ("good", "loops")
CAPTURES = Path(__file__).parents[1] / "data" / "captures"
RECORDINGS = [
    CAPTURES / "openai_v2_exp" / "session.otlp",
    CAPTURES / "pydantic_ai" / "wrongargs.otlp",
]
NO_JUDGE = Config(workers=0)


@dataclass
class Stand:
    """A running service after sessions whose judge failed and one without content, all closed."""

    service: Service
    judge: list[str]
    """Its settings, as options of commands beside it."""


def names(service: str) -> list[str]:
    """Of its sessions. Each says something of its own: a judge's answer about the same words comes from its cache."""
    return [BLIND] if service == BLIND else [f"{service}-{each}" for each in SESSIONS]


def requests(service: str) -> list[bytes]:
    turns = [
        agents.Turn(service=service, session=session, number=n, loops=session.endswith("loops"))
        for session in names(service)
        for n in range(3)
    ]
    return list(agents.requests(turns))


def blind_requests() -> list[bytes]:
    found = agents.spans(agents.Turn(service=BLIND, session=BLIND, number=0))
    facts = ("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.tool.name", "session.id")
    for span in found:
        kept = [each for each in span.attributes if each.key in facts]
        del span.attributes[:]
        span.attributes.extend(kept)
    return [agents.request(BLIND, found)]


def judged_by(server: OpenAiServer) -> list[str]:
    prices = ("judge.price.input=1", "judge.price.output=1")
    return settings(*server.settings, "judge.attempts=1", *prices)


def closed(service: Service, name: str) -> bool:
    ended = {
        each["session_id"]
        for each in service.signals()
        if each["service"] == name and each["evaluator"] in HEADLINES and each["final"]
    }
    return ended == set(names(name))


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The judge answers rubbish to the first service's sessions and is gone at the second's."""
    with ExitStack() as stack, ExitStack() as provider:
        server = provider.enter_context(OpenAiServer("garbage"))
        server.headers = {"connection": "close"}  # else its threads go on to answer
        judge = judged_by(server)
        windows = ("windows.trace.root_grace=100ms", "windows.session.idle=1s")
        data = tmp_path_factory.mktemp("down") / "data"
        service = stack.enter_context(Service(data, *windows, *judge[1::2]))
        send(service.grpc, *requests(RUBBISH), *blind_requests())
        service.wait_for("rubbish to be final", lambda: closed(service, RUBBISH))
        provider.close()
        send(service.grpc, *requests(DEAD))
        service.wait_for("failures to be final", lambda: closed(service, DEAD))
        service.wait_for("the blind session to close", lambda: closed(service, BLIND))
        shown = service.wait_for("the API", lambda: (s := rows(service)) and len(s) == 5 and s)
        assert shown
        service.wait_for("its agents", lambda: len(service.get("/api/v1/agents")["items"]) == 3)
        yield Stand(service, judge)


def rows(service: Service) -> list[dict[str, Any]]:
    found = service.get("/api/v1/sessions?limit=100")["items"]
    return [each for each in found if each["closed"]]


def command(stand: Stand, name: str, *more: str) -> Ended:
    port = stand.service.admin.rpartition(":")[2]
    return spanwise(name, *stand.judge, *settings(f"admin.port={port}"), *more)


def assert_unscored(signals: Sequence[dict[str, Any]], services: Sequence[str]) -> None:
    headlines = [each for each in signals if each["evaluator"] in HEADLINES]
    assert {each["service"] for each in headlines} == set(services)
    assert {(each["outcome"], each["reason"], each["score"]) for each in headlines} == {
        ("skipped", "low_coverage", None)
    }, "final or not"
    assert {each["success"] for each in headlines} == {None}


def test_every_judged_outcome_failed_and_no_session_had_a_score_at_any_time(stand: Stand) -> None:
    signals = stand.service.signals()

    judged = [each for each in signals if each["method"] == "llm_judge" and each["final"]]
    assert {(each["service"], each["outcome"]) for each in judged if each["error"]} == {
        (RUBBISH, "failed"),
        (DEAD, "failed"),
    }
    assert {each["score"] for each in judged} == {None}
    assert {each["reason"] for each in judged if each["service"] == BLIND} == {"no_content"}
    assert_unscored(signals, (RUBBISH, DEAD, BLIND))


def test_the_metrics_have_no_gauge_of_them_and_count_them_as_skipped(stand: Stand) -> None:
    def skipped() -> float:
        return stand.service.total("spanwise_evaluations_skipped_total", 'reason="low_coverage"')

    stand.service.wait_for("the counters", lambda: skipped() == 5 * len(HEADLINES))

    gauges = ("spanwise_agent_", "spanwise_window_mean_ratio{", "spanwise_window_samples{")
    shown = [each for each in stand.service.metrics() if each.startswith(gauges)]
    assert [each for each in shown if any(name in each for name in HEADLINES)] == []


def test_the_api_and_the_page_show_no_score_and_say_why(stand: Stand) -> None:
    page = stand.service.text
    agents_shown = stand.service.get("/api/v1/agents")["items"]
    overview = page("/") + page("/sessions")
    session = page(f"/session?service={BLIND}&id={BLIND}")

    assert {(s["reliability"], s["consistency"]) for s in rows(stand.service)} == {(None, None)}
    assert {(a["reliability"], a["consistency"]) for a in agents_shown} == {(None, None)}
    assert overview.count("not scored") == 5 + len(agents_shown)
    assert "failed with provider_error" in overview
    assert "failed with parse_error" in overview
    assert "the spans carry no content" in session
    assert 'class="chip good"' not in session


def test_the_doctor_names_the_sessions_the_error_and_what_to_set(stand: Stand) -> None:
    found = json.loads(command(stand, "doctor", "--format", "json").out)

    by_service = {each["service"]: each for each in found["unscored"]}
    assert {name: (s["sessions"], s["of"]) for name, s in by_service.items()} == {
        RUBBISH: (2, 2),
        DEAD: (2, 2),
        BLIND: (1, 1),
    }
    assert "parse_error" in by_service[RUBBISH]["why"]
    assert "provider_error" in by_service[DEAD]["why"]
    assert "the spans carry no content" in by_service[BLIND]["why"]
    judge = found["judge"]
    assert (judge["type"], judge["failed"]) == ("provider_error", judge["verdicts"])
    assert judge["message"] == "the provider cannot be reached (ConnectionRefusedError)"
    assert found["judge"]["setting"] == "spanwise validate --connect"
    (stack,) = (each for each in found["stacks"] if each["service"] == BLIND)
    (advice,) = (each["advice"] for each in stack["findings"] if each["lack"] == "no_content")
    assert [each["setting"] for each in advice] == [
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
    ]


def test_evaluate_says_the_same(stand: Stand) -> None:
    """Of recordings that score well and badly without a judge."""
    before = signals_of(NO_JUDGE, *RECORDINGS)

    signals = evaluated(*map(str, RECORDINGS), *stand.judge)
    table = StringIO()
    SignalTable(table, 80, shows=lambda _: True).add(RECORDINGS[0].stem, "", signals)

    scores = [s["score"] for s in before if s["evaluator"] == "agent_reliability"]
    assert max(scores) > 0.9
    assert min(scores) == 0.2
    assert_unscored(signals, sorted({each["service"] for each in before}))
    lines = [line for line in table.getvalue().splitlines() if "agent_reliability" in line]
    assert lines
    assert all("skipped" in line for line in lines)
