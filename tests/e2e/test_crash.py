"""kill -9 at any moment loses no acknowledged span, changes no score, and every repeat is byte for byte the same."""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.command import evaluated
from tests.support.fleet import differing, latest, quiet, scores, turns
from tests.support.hostile import post
from tests.support.loopback import Stub
from tests.support.recordings import write
from tests.support.sender import Sender, send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e]

SETTINGS = ("windows.trace.root_grace=1s", "windows.trace.idle=5m", "sinks.jsonl.max_size=1GiB")


def gauges(service: Service, *names: str) -> dict[str, float]:
    return {name: v for name, v in service.metrics().items() if name.startswith(names)}


def headline(service: Service) -> dict[str, float]:
    """The gauges that people are paged by."""
    return gauges(service, "spanwise_agent_reliability_ratio", "spanwise_agent_consistency_ratio")


def undisturbed(folder: Path, expected: list[agents.Turn], sent: list[bytes]) -> tuple[Any, Any]:
    """Scores and headline of the same requests without any crash."""
    wanted = {agents.trace_id(turn).hex() for turn in expected}

    def settled() -> bool:
        waiting = service.total("spanwise_traces_active", "")
        waiting += service.total("spanwise_outbox_records", 'sink="jsonl"')
        traces = {key[2] for key in latest(service.signals()) if key[1] == "trace"}
        return wanted <= traces and not waiting

    with Service(folder, *SETTINGS) as service:
        Sender(sent, lambda: service.grpc).run()
        service.wait_for("every trace is scored and delivered", settled, 120)
        quiet(service)  # the last session signals follow the last trace's, and the gauges both
        return scores(service.signals()), headline(service)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("kills", "sessions", "length"),
    [(20, 12, 8), pytest.param(200, 24, 30, marks=pytest.mark.slow)],
)
def test_kills_lose_nothing_and_change_nothing(
    tmp_path: Path, kills: int, sessions: int, length: int
) -> None:
    expected = turns(sessions, length)
    sent = list(agents.requests(expected))
    whole, shown = undisturbed(tmp_path / "whole", expected, sent)
    moments = random.Random(1)
    service = Service(tmp_path / "broken", *SETTINGS).start()
    sender = Sender(sent, lambda: service.grpc, pause=kills * 0.55 / len(sent))
    sender.start()
    try:
        for _ in range(kills):
            time.sleep(moments.uniform(0.05, 0.9))
            service.kill()
            service.start()
        sender.join(120)
        assert sender.acknowledged == len(sent)
        found = service.come_to(whole, lambda: scores(service.signals()), 120)
        assert service.come_to(shown, lambda: headline(service)) == shown
        service.kill()
        service.start()
        assert service.come_to(shown, lambda: headline(service)) == shown
        lines = service.signal_lines()
    finally:
        sender.give_up.set()
        service.kill()

    print(f"{kills=} traces={len(expected)} repeats={len(lines) - len(set(lines))}")
    assert {key: found.get(key) for key in whole} == whole
    assert differing(lines) == 0


QUICK = (
    "windows.trace.root_grace=200ms",
    "windows.trace.glance=500ms",
    "windows.session.idle=1s",
    "embedder.kind=none",
    "notify.page=https://spanwise.example.com",
    "tasks.feedback=[solved]",
)
WARM = 11
"""Sessions before one that loops: enough for its rank."""
RUNS = [True, False, True, None]
"""The first are runs of a task: what their spans say; None: a person says that the last one succeeded."""
LOOP = agents.Turn(service="loop-bot", session="loop", number=0, loops=True, calls=14)
RUNAWAY = 'spanwise_runaway_traces{agent="loop-bot",reason="repeated_calls",service="loop-bot"}'
PASSING = {
    f'spanwise_task{name}{{agent="support",k="{k}",service="shop"}}': value
    for name, k, value in (
        *(("_pass_at_k_ratio", 1, 0.75), ("_pass_at_k_ratio", 3, 1.0)),
        *(("_pass_pow_k_ratio", 1, 0.75), ("_pass_pow_k_ratio", 3, 0.25)),
        *(("s_left_out", 1, 0.0), ("s_left_out", 3, 0.0), ("s_left_out", 5, 1.0)),
    )
}


def session(number: int) -> agents.Turn:
    return agents.Turn(service="shop", session=f"s-{number}", number=number, loops=number == WARM)


def asking(number: int) -> bytes:
    """A session of one turn."""
    made = agents.spans(session(number))
    if number < len(RUNS):
        made[-1].attributes.add(key="spanwise.task.id").value.string_value = "refund"
        if (success := RUNS[number]) is not None:
            made[0].attributes.add(key="spanwise.task.success").value.bool_value = success
    return agents.request("shop", made)


def ranks(signals: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """By session, its final rank among those before it."""
    return {
        each["session_id"]: (each["id"], each["outcome"], each["score"])
        for each in signals
        if each["evaluator"] == "work_baseline" and each["final"] and each["service"] == "shop"
    }


def say(service: Service, path: str, number: int, name: str, value: object) -> None:
    """Feedback or a score of others, about the trace of a session."""
    said = [{"trace_id": agents.trace_id(session(number)).hex(), "name": name, "value": value}]
    body = json.dumps({"feedback": said} if path.endswith("feedback") else said).encode()
    url = service.http.replace("/v1/traces", path)
    status, answer = post(url, body, {"content-type": "application/json"})
    assert (status, json.loads(answer)["accepted"]) == (200, 1)


@pytest.mark.timeout(300)
def test_what_was_known_of_agents_is_known_after_a_kill(tmp_path: Path) -> None:
    """Feedback and scores of others, ranks, runs of a task, a trace that runs away, and who was told of it."""
    write(tmp_path / "all.otlp", map(asking, range(WARM + 1)))
    expected = ranks(evaluated(str(tmp_path / "all.otlp"), "--set", "embedder.kind=none"))
    *under_way, root = agents.spans(LOOP)

    with (
        Stub() as hook,
        Service(tmp_path / "data", *QUICK, f"notify.to.hook.webhook={hook.url}") as service,
    ):
        say(service, "/v1/feedback", 0, "thumb", True)
        say(service, "/v1/feedback", 3, "solved", True)
        say(service, "/v1/evaluations", 0, "early", 0.5)
        service.kill()  # what was said waits for its trace
        service.start()
        for number in range(WARM):  # in the order in which they close
            send(service.grpc, asking(number))
            done = lambda number=number: f"s-{number}" in ranks(service.signals())  # noqa: E731
            service.wait_for("the session's rank", done)
        send(service.grpc, agents.request(LOOP.service, under_way))
        service.wait_for("it runs away", lambda: service.metrics().get(RUNAWAY) == 1)
        service.wait_for("that is sent", lambda: service.total("spanwise_notices", '"sent"') == 1)
        service.kill()
        service.start()
        service.wait_for("it still does", lambda: service.metrics().get(RUNAWAY) == 1)
        tasks = ("spanwise_task_pass_", "spanwise_tasks_left_out")
        assert service.come_to(PASSING, lambda: gauges(service, *tasks)) == PASSING
        say(service, "/v1/evaluations", 0, "late", 0.5)
        send(service.grpc, asking(WARM), agents.request(LOOP.service, [root]))
        assert service.come_to(expected, lambda: ranks(service.signals())) == expected
        service.wait_for("it has ended", lambda: RUNAWAY not in service.metrics())
        first = service.get("/api/v1/sessions/s-0?service=shop")
        signals = service.signals()

    assert expected[f"s-{WARM}"][2] < 0.3, "it loops"
    assert [each["value"] for each in first["feedback"]] == [True]
    assert first["user_outcome"] == "positive"
    external = {each["id"]: each["evaluator"] for each in signals if each["method"] == "external"}
    assert Counter(external.values()) == {"early": 1, "late": 1}
    assert [each.body["type"] for each in hook.requests] == ["spanwise.alert.firing.v1"], "once"
