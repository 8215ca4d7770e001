"""A judge that answers rubbish, then none at all: no session has a score anywhere, and everything says why."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support import agents
from tests.support.command import settings, spanwise
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
RUBBISH, DEAD, BLIND = "rubbish", "dead", "blind"
HEADLINES = ("agent_reliability", "agent_consistency")
NAMES = {
    RUBBISH: {"rubbish-good", "rubbish-loops"},
    DEAD: {"dead-good", "dead-loops"},
    BLIND: {"blind"},
}
"""Of the sessions. Each says something of its own: a judge's answer about the same words comes from its cache."""


def requests(service: str) -> list[bytes]:
    turns = [
        agents.Turn(service=service, session=session, number=n, loops=session.endswith("loops"))
        for session in sorted(NAMES[service])
        for n in range(3)
    ]
    return list(agents.requests(turns))


def blind_request() -> bytes:
    """A trace without content."""
    found = agents.spans(agents.Turn(service=BLIND, session=BLIND, number=0))
    facts = ("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.tool.name", "session.id")
    for span in found:
        kept = [each for each in span.attributes if each.key in facts]
        del span.attributes[:]
        span.attributes.extend(kept)
    return agents.request(BLIND, found)


def closed(service: Service, *names: str) -> bool:
    ended = {
        each["session_id"]
        for each in service.signals()
        if each["evaluator"] in HEADLINES and each["final"]
    }
    return all(NAMES[name] <= ended for name in names)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """After sessions whose judge failed, and one without content.

    The judge answers rubbish to the first service's sessions and is gone at the second's.
    """
    with ExitStack() as stack, ExitStack() as provider:
        server = provider.enter_context(OpenAiServer("garbage"))
        server.headers = {"connection": "close"}  # else its threads go on to answer
        given = (
            *(*server.settings, "judge.attempts=1", "judge.price.input=1", "judge.price.output=1"),
            *("windows.trace.root_grace=100ms", "windows.session.idle=1s"),
        )
        data = tmp_path_factory.mktemp("down") / "data"
        running = stack.enter_context(Service(data, *given))
        send(running.grpc, *requests(RUBBISH), blind_request())
        running.wait_for("rubbish to be final", lambda: closed(running, RUBBISH))
        provider.close()
        send(running.grpc, *requests(DEAD))
        running.wait_for("all to be final", lambda: closed(running, DEAD, BLIND))
        running.wait_for("the API", lambda: len(closed_rows(running)) == 5)
        running.wait_for("its agents", lambda: len(running.get("/api/v1/agents")["items"]) == 3)
        yield running


def closed_rows(service: Service) -> list[dict[str, object]]:
    found = service.get("/api/v1/sessions?limit=100")["items"]
    return [each for each in found if each["closed"]]


def test_every_judged_outcome_failed_and_no_session_had_a_score_at_any_time(
    service: Service,
) -> None:
    signals = service.signals()

    judged = [each for each in signals if each["method"] == "llm_judge" and each["final"]]
    failed = {(each["service"], each["outcome"]) for each in judged if each["error"]}
    assert failed == {(RUBBISH, "failed"), (DEAD, "failed")}
    assert {each["score"] for each in judged} == {None}
    assert {each["reason"] for each in judged if each["service"] == BLIND} == {"no_content"}
    headlines = [each for each in signals if each["evaluator"] in HEADLINES]
    assert {each["service"] for each in headlines} == {RUBBISH, DEAD, BLIND}
    said = {(each["outcome"], each["reason"], each["score"]) for each in headlines}
    assert said == {("skipped", "low_coverage", None)}, "final or not"


def test_metrics_api_page_and_doctor_show_no_score_and_say_why(service: Service) -> None:
    family = "spanwise_evaluations_skipped_total"
    service.come_to(10, lambda: service.total(family, 'reason="low_coverage"'))
    gauges = ("spanwise_agent_", "spanwise_window_mean_ratio{", "spanwise_window_samples{")
    shown = [each for each in service.metrics() if each.startswith(gauges)]
    assert [each for each in shown if any(name in each for name in HEADLINES)] == []

    agents_shown = service.get("/api/v1/agents")["items"]
    rows = (*closed_rows(service), *agents_shown)
    assert {(each["reliability"], each["consistency"]) for each in rows} == {(None, None)}
    overview = service.text("/") + service.text("/sessions")
    assert overview.count("not scored") == 5 + len(agents_shown)
    assert "failed with provider_error" in overview
    assert "failed with parse_error" in overview
    assert "the spans carry no content" in service.text(f"/session?service={BLIND}&id={BLIND}")

    port = service.admin.rpartition(":")[2]
    done = spanwise("doctor", *settings(f"admin.port={port}"), "--format", "json")
    unscored = {each["service"]: each for each in json.loads(done.out)["unscored"]}
    assert {name: (s["sessions"], s["of"]) for name, s in unscored.items()} == {
        RUBBISH: (2, 2),
        DEAD: (2, 2),
        BLIND: (1, 1),
    }
    assert "parse_error" in unscored[RUBBISH]["why"]
    assert "provider_error" in unscored[DEAD]["why"]
