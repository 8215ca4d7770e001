"""The service with a judge behind a real HTTP server, asked through real litellm."""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.command import settings
from tests.support.openai_server import Mode, OpenAiServer
from tests.support.processes import ran
from tests.support.sender import send as deliver
from tests.support.service import ROOT, Service, children, is_judge
from tests.support.set_clock import ahead_at, clock_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

NAMES = ("task_completion", "confidence", "helpfulness")
SETTINGS = (
    "windows.trace.root_grace=200ms",
    "judge.price.input=1",
    "judge.price.output=1",
    "evaluators.helpfulness.enabled=true",
    "embedder.kind=none",
)


def make_service(
    folder: Path,
    server: OpenAiServer,
    *more: str,
    environment: Mapping[str, str] | None = None,
    measured: bool = False,
) -> Service:
    chosen = (*SETTINGS, *server.settings, *more)
    return Service(folder, *chosen, environment=environment, measured=measured)


def send(service: Service, turns: list[agents.Turn]) -> None:
    deliver(service.grpc, *agents.requests(turns))


def turns(count: int, *, first: int = 0) -> list[agents.Turn]:
    return [
        agents.Turn(service="bot", session=f"s-{n}", number=n) for n in range(first, first + count)
    ]


def judged(service: Service) -> list[dict[str, Any]]:
    return [each for each in service.signals() if each["method"] == "llm_judge"]


def has_judged(service: Service, count: int) -> bool:
    return len(judged(service)) >= count


def verdicts(found: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((each["trace_id"], each["evaluator"]) for each in found)


def judge_pid(service: Service) -> int | None:
    for pid in children(service.pid):
        if is_judge(pid):
            return pid
    return None


def has_litellm(pid: int) -> bool:
    """Whether a process has any file of litellm or of its compiled dependencies mapped."""
    return "tiktoken" in Path(f"/proc/{pid}/maps").read_text()


def test_verdicts_follow_stand_ins_and_name_what_they_cost(tmp_path: Path) -> None:
    with (
        OpenAiServer() as server,
        make_service(tmp_path / "data", server, measured=True) as service,
    ):
        send(service, turns(2))
        service.wait_for("verdicts", lambda: len(judged(service)) >= 2 * 8)

        found = judged(service)
        assert set(verdicts(judged(service)).values()) == {1}
        assert {each["evaluator"] for each in found} >= set(NAMES)
        scored = [each for each in found if each["outcome"] == "scored"]
        assert all(each["judge"]["model"] == "openai/test-judge" for each in scored)
        assert all(each["judge"]["calls"] >= 1 for each in scored)
        assert all(each["judge"]["cost_usd"] > 0 for each in scored)
        assert all(each["judge"]["input_tokens"] > 0 for each in scored)
        assert len(server.requests) == 2 * 2
        stand_ins = [
            each
            for each in service.signals()
            if each["evaluator"] == "confidence" and each["method"] == "deterministic"
        ]
        assert len(stand_ins) == 2
        assert not any(each["final"] for each in stand_ins)
        metrics = service.metrics()
        ok = 'spanwise_judge_requests_total{model="openai/test-judge",result="ok"}'
        assert metrics[ok] == 4
        cost = metrics['spanwise_judge_cost_usd_total{model="openai/test-judge"}']
        assert cost == pytest.approx(
            sum(each["judge"]["cost_usd"] for each in found if each["judge"])
        )
        pid = judge_pid(service)
        assert pid is not None
        assert has_litellm(pid)
        others = [service.pid, *(each for each in children(service.pid) if each != pid)]
        assert not any(has_litellm(each) for each in others)
        server.open.clear()
        send(service, turns(8, first=2))
        service.wait_for("calls under way", lambda: len(server.requests) == 2 * 2 + 8)
    server.open.set()
    said = service.output.read_text()
    assert "never awaited" not in said, "calls under way end with the service"
    assert "WARNING asyncio" not in said


def test_a_killed_judge_gives_one_verdict_per_subject_and_pays_little_again(tmp_path: Path) -> None:
    concurrency = 4
    count = 12
    with (
        OpenAiServer("slow", delay=0.3) as server,
        make_service(
            tmp_path / "data",
            server,
            f"judge.concurrency={concurrency}",
            "judge.budget.calls_per_minute=1000",
        ) as service,
    ):
        send(service, turns(count))
        service.wait_for("some calls", lambda: server.answered >= 7)
        pid = judge_pid(service)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        service.wait_for("verdicts", lambda: len(judged(service)) >= count * 8)
        time.sleep(0.5)

        found = verdicts(judged(service))
        assert set(found.values()) == {1}
        assert len({trace for trace, _ in found}) == count
        assert {each["outcome"] for each in judged(service)} <= {"scored", "not_applicable"}
        assert len(server.requests) <= 2 * count + concurrency
        assert judge_pid(service) != pid


def test_the_spend_limit_holds_across_restarts(tmp_path: Path) -> None:
    limit = 0.0075  # a few calls beside what one answer may cost at most
    noon = clock_file(tmp_path / "off", ahead_at(12))  # both starts are on one UTC day
    limited = (f"judge.budget.usd_per_day={limit}", "judge.concurrency=1")
    data = tmp_path / "data"
    found: list[dict[str, Any]] = []
    remaining: float | None = None
    with OpenAiServer() as server:
        for start in range(2):
            with make_service(data, server, *limited, environment=noon) as service:
                send(service, turns(3, first=3 * start))
                wanted = 3 * (start + 1) * 8
                service.wait_for("outcomes", partial(has_judged, service, wanted))
                found = judged(service)
                remaining = service.metrics().get(
                    'spanwise_judge_budget_remaining_usd{budget="usd_per_day"}'
                )
        spent = sum(each["judge"]["cost_usd"] or 0 for each in found if each["judge"])
    assert 0 < spent <= limit
    assert remaining is not None
    assert remaining == pytest.approx(limit - spent)
    reasons = Counter(each["reason"] for each in found if each["outcome"] == "skipped")
    assert set(reasons) == {"budget"}
    assert set(verdicts(found).values()) == {1}


def test_a_dead_judge_ends_in_judge_lag_and_facts_are_scored_meanwhile(tmp_path: Path) -> None:
    with (
        OpenAiServer("slow", delay=30.0) as server,
        make_service(tmp_path / "data", server, "judge.max_lag=8s") as service,
    ):
        send(service, turns(1))
        service.wait_for("facts", lambda: any(not each["final"] for each in service.signals()))
        service.wait_for("outcomes", lambda: len(judged(service)) >= 8)
        found = judged(service)
        assert {(each["outcome"], each["reason"]) for each in found} == {("skipped", "judge_lag")}
        assert set(verdicts(judged(service)).values()) == {1}


MODES: tuple[Mode, ...] = (
    "429",
    "500",
    "400",
    "garbage",
    "half",
    "wrong_types",
    "nan",
    "out_of_range",
)


def test_every_way_to_fail_ends_in_one_final_outcome_and_few_calls(tmp_path: Path) -> None:
    with OpenAiServer() as server, make_service(tmp_path / "data", server) as service:
        for number, mode in enumerate(MODES):
            server.mode = mode
            before = len(server.requests)
            send(service, turns(1, first=number))
            service.wait_for(mode, partial(has_judged, service, 8 * (number + 1)))
            assert len(server.requests) - before <= 12, mode
            found = judged(service)[8 * number :]
            assert {each["session_id"] for each in found} == {f"s-{number}"}
            assert len({each["evaluator"] for each in found}) == 8
            assert all(each["final"] for each in found)
            failed = [each for each in found if each["outcome"] == "failed"]
            assert failed, mode
            assert all(each["score"] is None and each["error"] for each in failed)
        assert set(verdicts(judged(service)).values()) == {1}
        facts = [each for each in service.signals() if each["evaluator"] == "confidence"]
        assert sum(each["method"] == "deterministic" for each in facts) == len(MODES)


def test_replay_scores_the_history_again_with_a_new_rubric(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with OpenAiServer() as server:
        with make_service(data, server) as service:
            send(service, turns(1))
            service.wait_for("verdicts", partial(has_judged, service, 8))
            before = {each["evaluator"]: each["id"] for each in judged(service)}
        (tmp_path / "more.yaml").write_text("judges: {tone: {rubric: Was it kind to the user}}")
        sets = settings(*SETTINGS, *server.settings, f"data_dir={data}")
        done = ran(
            *(sys.executable, "-m", "collector.commands.start"),
            *("replay", "--config", "more.yaml", *sets),
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    after = {each["evaluator"]: each for each in found if each["method"] == "llm_judge"}
    assert {name: each["id"] for name, each in after.items() if name in before} == before
    assert after["tone"]["score"] == 0.8


def test_a_session_that_closes_gets_its_final_verdict(tmp_path: Path) -> None:
    closing = ("windows.session.idle=2s", "evaluators.conversation_quality.enabled=true")
    with OpenAiServer() as server, make_service(tmp_path / "data", server, *closing) as service:
        send(service, [agents.Turn(service="bot", session="s-0", number=n) for n in range(2)])

        def found() -> list[dict[str, Any]]:
            return [e for e in service.signals() if e["evaluator"] == "conversation_quality"]

        service.wait_for("the verdict", lambda: bool(found()))
        time.sleep(0.5)
        (verdict,) = found()
        ok = 'spanwise_judge_requests_total{model="openai/test-judge",result="ok"}'
        service.wait_for(
            "every call is counted", lambda: service.metrics().get(ok) == len(server.requests)
        )
    assert (verdict["scope"], verdict["session_id"]) == ("session", "s-0")
    assert (verdict["method"], verdict["outcome"]) == ("llm_judge", "scored")
    assert verdict["final"]
    assert verdict["closed"] == "idle"
    assert verdict["judge"]["cost_usd"] > 0
