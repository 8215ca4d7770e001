"""Feedback and the real process: 10,000 at once, kill -9 between the answer and the join, scores that do not change."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Turn, request, spans, trace_id
from tests.support.dialect_spans import key_values
from tests.support.fleet import quiet
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUICK = ("windows.trace.root_grace=200ms", "windows.session.idle=2s", "embedder.kind=none")
SAID = 10_000
AT_ONCE = 1_000


def post(service: Service, path: str, body: bytes, **headers: str) -> dict[str, Any]:
    base = service.http.removesuffix("/v1/traces")
    asked = urllib.request.Request(f"{base}{path}", data=body, headers=headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.loads(answer.read() or b"{}")


def say(service: Service, *feedback: dict[str, Any]) -> int:
    body = json.dumps({"feedback": feedback}).encode()
    return int(post(service, "/v1/feedback", body)["accepted"])


def turn(number: int) -> Turn:
    return Turn(service="shop", session=f"s-{number}", number=0, fails=number % 2 == 1)


def thumb(number: int, **fields: Any) -> dict[str, Any]:
    about = {"trace_id": trace_id(turn(number)).hex(), "name": "thumb", "value": number % 2 == 0}
    return {**about, **fields}


def joined(service: Service) -> float:
    return service.total("spanwise_feedback_total")


def test_what_was_answered_is_joined_after_kill_9_and_changes_no_score(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *QUICK) as service:
        assert say(service, thumb(0, comment="before its trace")) == 1
        service.kill()
        service.start()
        for number in range(4):
            send(service.grpc, request("shop", spans(turn(number))))
        service.wait_for("the first is joined", lambda: joined(service) == 1)
        service.wait_for(
            "every session is scored",
            lambda: (
                {
                    each["session_id"]
                    for each in service.signals()
                    if each["scope"] == "session" and each["final"]
                }
                == {f"s-{number}" for number in range(4)}
            ),
        )
        quiet(service)
        before = {each["id"]: each for each in service.signals()}

        assert say(service, *map(thumb, range(1, 4))) == 3
        service.kill()
        service.start()
        after = thumb(0, id="mine", comment="after its session closed")
        assert say(service, after) == 1
        service.wait_for(
            "all of it is shown",
            lambda: len(service.get("/api/v1/sessions/s-0?service=shop")["feedback"]) == 2,
        )

        session = service.get("/api/v1/sessions/s-1?service=shop")
        assert session["user_outcome"] == "negative"
        assert service.get("/api/v1/sessions/s-0?service=shop")["user_outcome"] == "positive"
        handed = service.wait_for(
            "all of it is handed on",
            lambda: (
                {each["id"] for each in service.feedback_lines()}
                if len(service.feedback_lines()) >= 5
                else None
            ),
        )
        assert len(handed) == 5
        quiet(service)
        now = {each["id"]: each for each in service.signals()}
        assert now == before, "no score, no revision, no session changed"


def test_ten_thousand_at_once_before_and_after_their_traces(tmp_path: Path) -> None:
    sessions = 100
    with Service(tmp_path / "data", *QUICK) as service:
        for first in range(0, SAID, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            named = (thumb(number % sessions, id=f"vote-{number}") for number in numbers)
            assert say(service, *named) == AT_ONCE
        for number in range(sessions):
            send(service.grpc, request("shop", spans(turn(number))))

        service.wait_for("all of it is joined", lambda: joined(service) == SAID, 120)
        found = service.wait_for(
            "the agreement",
            lambda: service.get("/api/v1/agreement?evaluator=tool_correctness")["agreement"],
        )
        (agreed,) = found
        assert (agreed["samples"], agreed["liked"]) == (sessions, sessions // 2)
        assert agreed["rank"] > 0.9, "failing tools are what people dislike here"


def test_a_task_whose_success_people_say(tmp_path: Path) -> None:
    settings = (*QUICK, "tasks.feedback=[solved]")
    with Service(tmp_path / "data", *settings) as service:
        for number in range(3):
            made = spans(turn(number))
            made[-1].attributes.extend(key_values({"spanwise.task.id": "refund"}))
            send(service.grpc, request("shop", made))
        say(service, thumb(0, name="solved", value=True), thumb(1, name="solved", value=False))
        series = 'spanwise_task_pass_at_k_ratio{agent="%s",k="1",service="shop"}'
        agent = service.wait_for("an agent", lambda: service.get("/api/v1/agents")["items"])[0][
            "agent"
        ]

        service.wait_for(
            "the two that are decided",
            lambda: service.metrics().get(series % agent) == 0.5,
        )
        say(service, thumb(2, name="solved", value=True))
        service.wait_for(
            "the third one",
            lambda: round(service.metrics().get(series % agent, 0.0), 3) == 0.667,
        )
