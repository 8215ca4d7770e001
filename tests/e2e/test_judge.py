"""The service with a judge, or hosted embeddings, behind a real HTTP server, asked through real litellm."""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.clocks import ahead_at, clock_file
from tests.support.command import settings, spanwise
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send as deliver
from tests.support.service import Service, children, is_judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

SETTINGS = (
    "windows.trace.root_grace=200ms",
    "judge.price.input=1",
    "judge.price.output=1",
    "evaluators.helpfulness.enabled=true",
    "embedder.kind=none",
)
EACH = 8
"""Judged outcomes of a trace."""
ASKED = 'spanwise_judge_requests_total{model="%s",result="ok"}'


def send(service: Service, *numbers: int, session: str = "s-{}") -> None:
    turns = [agents.Turn(service="bot", session=session.format(n), number=n) for n in numbers]
    deliver(service.grpc, *agents.requests(turns))


def judged(service: Service) -> list[dict[str, Any]]:
    return [each for each in service.signals() if each["method"] == "llm_judge"]


def wait_for_verdicts(service: Service, traces: int) -> list[dict[str, Any]]:
    """Each once."""
    service.wait_for("verdicts", lambda: len(judged(service)) >= EACH * traces)
    found = judged(service)
    assert set(Counter((each["trace_id"], each["evaluator"]) for each in found).values()) == {1}
    return found


def judge_pid(service: Service) -> int:
    return next(each for each in children(service.pid) if is_judge(each))


def has_litellm(pid: int) -> bool:
    """Whether a process has any file of litellm or of its compiled dependencies mapped."""
    return "tiktoken" in Path(f"/proc/{pid}/maps").read_text()


def test_verdicts_follow_stand_ins_and_name_what_they_cost(tmp_path: Path) -> None:
    with (
        OpenAiServer() as server,
        Service(tmp_path / "data", *SETTINGS, *server.settings) as service,
    ):
        send(service, 0, 1)
        found = wait_for_verdicts(service, 2)
        names = {"task_completion", "confidence", "helpfulness"}
        assert {each["evaluator"] for each in found} >= names
        for each in (each["judge"] for each in found if each["outcome"] == "scored"):
            assert each["model"] == "openai/test-judge"
            assert min(each["calls"], each["cost_usd"], each["input_tokens"]) > 0
        assert len(server.requests) == 2 * 2
        stand_ins = [
            each["final"]
            for each in service.signals()
            if each["evaluator"] == "confidence" and each["method"] == "deterministic"
        ]
        assert stand_ins == [False, False]
        metrics = service.metrics()
        assert metrics[ASKED % "openai/test-judge"] == 4
        cost = sum(each["judge"]["cost_usd"] for each in found if each["judge"])
        counted = metrics['spanwise_judge_cost_usd_total{model="openai/test-judge"}']
        assert counted == pytest.approx(cost)
        with_litellm = {each for each in children(service.pid) if has_litellm(each)}
        assert with_litellm == {judge_pid(service)}
        assert not has_litellm(service.pid)
        server.open.clear()
        send(service, *range(2, 10))
        service.wait_for("calls under way", lambda: len(server.requests) == 2 * 2 + 8)
    server.open.set()
    said = service.output.read_text()
    assert "never awaited" not in said, "calls under way end with the service"
    assert "WARNING asyncio" not in said


def test_a_killed_judge_gives_one_verdict_per_subject_and_pays_little_again(tmp_path: Path) -> None:
    count, concurrency = 12, 4
    limits = (f"judge.concurrency={concurrency}", "judge.budget.calls_per_minute=1000")
    with (
        OpenAiServer("slow", delay=0.3) as server,
        Service(tmp_path / "data", *SETTINGS, *server.settings, *limits) as service,
    ):
        send(service, *range(count))
        service.wait_for("some calls", lambda: server.answered >= 7)
        pid = judge_pid(service)
        os.kill(pid, signal.SIGKILL)

        found = wait_for_verdicts(service, count)
        assert len({each["trace_id"] for each in found}) == count
        assert {each["outcome"] for each in found} <= {"scored", "not_applicable"}
        assert len(server.requests) <= 2 * count + concurrency
        assert judge_pid(service) != pid


def test_the_spend_limit_holds_across_restarts(tmp_path: Path) -> None:
    limit = 0.0075  # a few calls beside what one answer may cost at most
    noon = clock_file(tmp_path / "off", ahead_at(12))  # both starts are on one UTC day
    limited = (f"judge.budget.usd_per_day={limit}", "judge.concurrency=1")
    found: list[dict[str, Any]] = []
    remaining = limit
    with OpenAiServer() as server:
        chosen = (*SETTINGS, *server.settings, *limited)
        for start in range(2):
            with Service(tmp_path / "data", *chosen, environment=noon) as service:
                shown = service.come_to(
                    pytest.approx(remaining),
                    lambda: service.total("spanwise_judge_budget_remaining_usd", "usd_per_day"),
                )
                assert shown == pytest.approx(remaining), "what was spent before is known"
                send(service, *range(3 * start, 3 * start + 3))
                found = wait_for_verdicts(service, 3 * (start + 1))
                spent = sum(each["judge"]["cost_usd"] or 0 for each in found if each["judge"])
                remaining = limit - spent
    assert 0 <= remaining < limit
    assert {each["reason"] for each in found if each["outcome"] == "skipped"} == {"budget"}


def test_replay_scores_the_history_again_with_a_new_rubric(tmp_path: Path) -> None:
    with OpenAiServer() as server:
        chosen = (*SETTINGS, *server.settings)
        with Service(tmp_path / "data", *chosen) as service:
            send(service, 0)
            before = {each["evaluator"]: each["id"] for each in wait_for_verdicts(service, 1)}
        more = tmp_path / "more.yaml"
        more.write_text("judges: {tone: {rubric: Was it kind to the user}}")
        given = settings(*chosen, f"data_dir={service.data}")
        done = spanwise("replay", "--config", str(more), *given)
    assert done.code == 0, done.err
    found = [json.loads(line) for line in done.out.splitlines()]
    after = {each["evaluator"]: each for each in found if each["method"] == "llm_judge"}
    assert {name: each["id"] for name, each in after.items() if name in before} == before
    assert after["tone"]["score"] == 0.8


def test_a_session_that_closes_gets_its_final_verdict(tmp_path: Path) -> None:
    closing = ("windows.session.idle=2s", "evaluators.conversation_quality.enabled=true")
    with (
        OpenAiServer() as server,
        Service(tmp_path / "data", *SETTINGS, *server.settings, *closing) as service,
    ):
        send(service, 0, 1, session="s-0")

        def found() -> list[dict[str, Any]]:
            return [e for e in service.signals() if e["evaluator"] == "conversation_quality"]

        (verdict,) = service.wait_for("the verdict", found)
    assert (verdict["scope"], verdict["session_id"]) == ("session", "s-0")
    assert (verdict["method"], verdict["outcome"]) == ("llm_judge", "scored")
    assert (verdict["final"], verdict["closed"]) == (True, "idle")
    assert verdict["judge"]["cost_usd"] > 0


def test_hosted_embeddings_come_with_their_cost_and_history_outlives_a_restart(
    tmp_path: Path,
) -> None:
    model = "openai/text-embedding-3-small"
    found: list[dict[str, Any]] = []
    with OpenAiServer() as server:
        chosen = (
            *("windows.trace.root_grace=200ms", "embedder.kind=litellm", "embedder.api_key=none"),
            *(f"embedder.model={model}", f"embedder.base_url={server.url}"),
        )
        for start in (0, 2):
            with Service(tmp_path / "data", *chosen) as service:

                def embedded(service: Service = service) -> list[dict[str, Any]]:
                    return [each for each in service.signals() if each["method"] == "embedding"]

                for number in (start, start + 1):
                    send(service, number, session="s-1")
                    wanted = 2 * (number + 1)
                    service.wait_for("embedded", lambda n=wanted: len(embedded()) >= n)
                found = embedded()
                metrics = service.metrics()

    assert Counter(each["evaluator"] for each in found) == {"coherence": 4, "loop_detection": 4}
    assert {each["final"] for each in found} == {True}
    first, *later = (each for each in found if each["evaluator"] == "loop_detection")
    assert first["assumed"] == 1.0
    assert {each["outcome"] for each in found if each is not first} == {"scored"}
    assert [each["metadata"]["window_size"] for each in later] == [1, 2, 3]
    used = [each["judge"] for each in found if each["judge"] is not None]
    assert {each["model"] for each in used} == {model}
    assert sum(each["cost_usd"] for each in used) > 0
    assert metrics[ASKED % model] == 2
    # Earlier outputs were embedded with their own trace: nothing is paid for twice.
    assert set(Counter(server.embedded).values()) == {1}
    assert not server.requests
