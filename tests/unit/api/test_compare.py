"""`/api/v1/compare` and the gate: verdicts from the windows of versions."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec
import pytest

from collector.api.answers import RequestRefused
from collector.records.comparison import VersionWindow
from collector.records.standing import AgentLabels, Fault, Standing
from collector.records.windows import WindowEntry
from collector.watch.windows.target import look_at
from evaluators.formulas.fault_watch import FaultKind
from evaluators.model import ToolCall
from tests.support import api_records as make
from tests.support.api_stand import EVALUATORS, NewStand, Stand
from tests.support.table import for_each

Windows = dict[str, list[WindowEntry]]
Scores = Sequence[float | None]
GOOD = [0.9, 0.8, 1.0, 0.4]
RELIABILITY = {"name": "agent_reliability", "scope": "session", "threshold": 0.5}


def entries(prefix: str, scores: Scores, first: int = 0) -> list[WindowEntry]:
    """Sessions, a second apart; None: too little of it is seen."""
    return [
        WindowEntry(
            session=f"{prefix}-{at}",
            time=1_000.0 + first + at,
            revision=1,
            final=True,
            id=f"{prefix}-{at}",
            score=score or 0.0,
            covered=score is not None,
        )
        for at, score in enumerate(scores)
    ]


@pytest.fixture
def windows() -> Windows:
    return {
        "1.4": entries("old", GOOD * 50),
        "1.5": entries("new", [0.1] * 40, first=1_000),
    }


@pytest.fixture
def judged() -> Windows:
    """What a judge said of each version, if anything."""
    return {}


@pytest.fixture
def stand(
    new_stand: NewStand, windows: Windows, judged: Windows, monkeypatch: pytest.MonkeyPatch
) -> Stand:
    monkeypatch.setattr("tests.support.api_stand.EVALUATORS", [RELIABILITY, *EVALUATORS])
    agents = (("shop", "clerk"), ("desk", "one"), ("desk", "two"))

    def versions(agent: AgentLabels, evaluator: str) -> Mapping[str, VersionWindow]:
        if (agent, evaluator) == (("shop", "clerk"), "task_completion"):
            return {name: VersionWindow(each) for name, each in judged.items()}
        if (agent, evaluator) != (("shop", "clerk"), "agent_reliability"):
            return {}
        looks = look_at(windows, {})
        return {name: VersionWindow(each, looks.get(name)) for name, each in windows.items()}

    made = new_stand(versions=versions)
    made.standings = {
        each: Standing(service=each[0], agent=each[1], judged_by="task_completion")
        for each in agents
    }
    return made


async def compared(stand: Stand, **asked: str) -> tuple[int, dict[str, Any]]:
    given = {"service": "shop", "candidate": "1.5", **asked}
    query = "&".join(f"{name}={value}" for name, value in given.items() if value)
    response = await stand.get(f"/api/v1/compare?{query}")
    return response.status_code, response.json()


async def test_a_worse_release_fails_at_the_first_look_and_names_its_worst(stand: Stand) -> None:
    status, found = await compared(stand)

    assert status == 200
    assert {
        "verdict": "fail",
        "failed": True,
        "passed": False,
        "reason": None,
        "next_look": None,
        "service": "shop",
        "agent": "clerk",
        "rank": 0.0,
        "sessions": ["new-0", "new-1", "new-10"],
        "page": "/agent?service=shop&agent=clerk",
    }.items() <= found.items()
    assert {"version": "1.4", "samples": 200, "fail_ratio": 0.25}.items() <= found[
        "baseline"
    ].items()
    assert {"samples": 40, "used": 20, "fail_ratio": 1.0}.items() <= found["candidate"].items()


async def test_the_baseline_is_what_had_most_sessions_before_the_candidate(
    stand: Stand, windows: Windows
) -> None:
    windows["1.6"] = entries("newer", [0.9] * 300, first=2_000)
    windows["1.3"] = entries("older", [0.9] * 30)

    assert (await compared(stand))[1]["baseline"]["version"] == "1.4"
    assert (await compared(stand, baseline="1.3"))[1]["baseline"]["version"] == "1.3"


async def test_a_side_of_which_too_little_is_seen_is_inconclusive(
    stand: Stand, windows: Windows
) -> None:
    _, unseen = await compared(stand, candidate="2.0")
    _, alone = await compared(stand, baseline="0.1")
    windows["1.5"] = entries("new", [1.0, None, None] * 20, first=1_000)
    _, blind = await compared(stand)

    reasons = [each["reason"] for each in (unseen, alone, blind)]
    assert reasons == ["too_few_candidate", "too_few_baseline", "low_coverage"]
    assert {each["verdict"] for each in (unseen, alone, blind)} == {"inconclusive"}
    assert (unseen["candidate"]["version"], unseen["candidate"]["samples"]) == ("2.0", 0)
    assert (unseen["next_look"], alone["baseline"]["version"]) == (20, "0.1")


@for_each(
    ("asked", "status", "says"),
    [
        ({"service": "nowhere"}, 404, "no service `nowhere`"),
        ({"agent": "other"}, 404, "no agent `other` of `shop`"),
        ({"service": "desk"}, 422, "name one of one, two"),
        ({"candidate": ""}, 422, "candidate: required"),
        ({"service": ""}, 422, "service: required"),
        ({"margin": "0.7"}, 422, "margin: expected a number above 0"),
        ({"evaluator": "nothing"}, 422, "expected one that scores sessions, got `nothing`"),
        ({"evaluator": "step_efficiency"}, 422, "expected one that scores sessions"),
        ({"candidat": "1"}, 422, "candidat: no such parameter"),
    ],
)
async def test_a_wrong_question_is_one_line(
    stand: Stand, asked: dict[str, str], status: int, says: str
) -> None:
    found, body = await compared(stand, **asked)

    assert found == status
    assert says in body["error"]["message"]


async def test_sessions_without_a_version_say_how_to_name_one(
    stand: Stand, windows: Windows
) -> None:
    windows.clear()
    windows[""] = entries("old", [0.9] * 30)

    status, body = await compared(stand)

    says = "OTEL_RESOURCE_ATTRIBUTES=service.version="
    assert (status, says in body["error"]["message"]) == (400, True)


# --- the gate --------------------------------------------------------------------------------------------------------


async def gated(stand: Stand, content: bytes = b"", **metadata: str) -> tuple[int, str]:
    given = {"service": "shop", "candidate": "1.5", **metadata}
    body = {"name": "shop", "namespace": "prod", "phase": "Progressing", "metadata": given}
    async with stand.client() as client:
        response = await client.post(
            "/api/v1/compare/gate", content=content or msgspec.json.encode(body)
        )
    return response.status_code, response.text


@for_each(
    ("kind", "candidate", "status", "says"),
    [
        ("rollout", "1.5", 409, "fail: agent_reliability of 1.5 over the first 20 of 40 sessions"),
        ("rollout", "2.0", 200, "inconclusive (too_few_candidate)"),
        ("confirm-promotion", "2.0", 409, "inconclusive (too_few_candidate)"),
        ("", "2.0", 200, "inconclusive (too_few_candidate)"),
        ("rollout", "1.6", 200, "pass: "),
        ("confirm-promotion", "1.6", 200, "pass: "),
    ],
)
async def test_flagger_is_stopped_by_a_fail_and_promotes_a_pass_alone(
    stand: Stand, windows: Windows, kind: str, candidate: str, status: int, says: str
) -> None:
    windows["1.6"] = entries("good", GOOD * 20, first=1_000)

    found, said = await gated(stand, type=kind, candidate=candidate)

    assert (found, said[: len(says)]) == (status, says)
    assert [(await gated(stand, each))[0] for each in (b"no json", b"x" * 70_000)] == [422, 413]


def take(stand: Stand, version: str, failed: int, of: int, first: int, score: float) -> None:
    """Sessions of `clerk` that use a tool, which fails in the last ones; all have this score."""
    for at in range(of):
        error = "no" if at >= of - failed else None
        called = (ToolCall(name="find_order", error=error),)
        names = {"service": "shop", "agent": "clerk", "agent_version": version}
        stand.take_session(100 * (first + at), score, **names, tool_calls=called)


async def test_a_decided_verdict_says_what_changed_between_the_versions(stand: Stand) -> None:
    stand.time = make.START + 9_000
    take(stand, "1.4", 0, of=30, first=1, score=0.9)
    take(stand, "1.5", 30, of=30, first=31, score=0.2)

    changed = (await compared(stand))[1]["changed"]
    undecided = (await compared(stand, baseline="1.3"))[1]

    counts = {"uses": 30, "failures": 30, "uses_before": 30, "failures_before": 0}
    assert changed["tools"] == [{"tool": "find_order", **counts}]
    assert changed["evaluators"][0]["evaluator"] == "agent_reliability"
    assert {"kind": "version", "value": "1.5", "before": 0.0, "since": 1.0} in changed["differs"]
    assert (undecided["verdict"], undecided["changed"]) == ("inconclusive", None)


async def test_a_tool_that_fails_fails_the_release_whatever_ranks_say(
    stand: Stand, windows: Windows
) -> None:
    stand.time = make.START + 9_000
    windows["1.4"] = entries("old", [0.9] * 40)
    windows["1.5"] = entries("new", [0.9] * 16, first=1_000)
    take(stand, "1.4", 0, of=40, first=1, score=0.9)
    take(stand, "1.5", 16, of=16, first=41, score=0.9)

    _, found = await compared(stand)
    status, said = await gated(stand, type="rollout")

    reason = "fault: tool_failed find_order, 16 of 16 sessions, 0 of 40 before"
    assert (found["verdict"], found["failed"], found["passed"]) == ("fail", True, False)
    assert (found["reason"], found["next_look"]) == (reason, None)
    assert found["changed"]["tools"][0]["tool"] == "find_order"
    assert status == 409
    assert said.startswith(f"fail ({reason})")
    page = await stand.get("/compare?service=shop&agent=clerk&baseline=1.4&candidate=1.5")
    assert reason in page.text


@pytest.mark.parametrize(
    ("sessions", "fault", "verdict"),
    [
        (("new-3", "new-2"), "model_failed", "fail"),
        (("new-3", "old-2"), "model_failed", "inconclusive"),
        (("other",), "model_failed", "inconclusive"),
        (("new-3", "new-2"), "gave_up", "inconclusive"),
    ],
)
async def test_a_fault_that_the_candidates_uses_raised_fails_the_release(
    stand: Stand, windows: Windows, sessions: tuple[str, ...], fault: FaultKind, verdict: str
) -> None:
    windows["1.5"] = entries("new", [0.9] * 12, first=1_000)
    counts: dict[str, Any] = {"uses": 12, "failures": 9, "uses_before": 200, "failures_before": 1}
    raised = Fault(fault=fault, tool="", since=2_000.0, sessions=sessions, **counts)
    agent = ("shop", "clerk")
    stand.standings = {agent: Standing(service="shop", agent="clerk", faults=(raised,))}

    _, found = await compared(stand)

    assert found["verdict"] == verdict
    if verdict == "fail":
        assert found["reason"] == "fault: model_failed, 9 of 12 sessions, 1 of 200 before"


async def test_a_verdict_does_not_need_the_index(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollout waits for it: it was refused with 503 while the index was being opened again."""
    _, empty = await compared(stand)

    def refused(_: object) -> NoReturn:
        raise RequestRefused(503, "the index is being opened again; ask in a moment")

    monkeypatch.setattr("collector.api.index.Index.reading", refused)
    status, found = await compared(stand)

    assert (empty["verdict"], empty["changed"]) == ("fail", None), "no session in the index"
    assert (status, found["verdict"], found["changed"]) == (200, "fail", None)


@pytest.mark.parametrize(
    ("free", "said", "verdict", "decided"),
    [
        (GOOD * 40, [0.1] * 40, "fail", "task_completion"),
        (GOOD * 2, [0.1] * 40, "fail", "task_completion"),
        (GOOD * 2, GOOD * 40, "pass", "task_completion"),
        (GOOD * 40, GOOD, "pass", "agent_reliability"),
        ([0.1] * 40, GOOD * 40, "fail", "agent_reliability"),
        (GOOD * 2, GOOD, "inconclusive", None),
    ],
)
async def test_the_verdict_names_the_evaluator_that_decided(
    stand: Stand,
    windows: Windows,
    judged: Windows,
    free: Scores,
    said: Scores,
    verdict: str,
    decided: str | None,
) -> None:
    """A judge that sees a loss fails the release; that it sees none passes what free scores leave open."""
    windows["1.5"] = entries("new", free, first=1_000)
    judged |= {"1.4": entries("old", GOOD * 50), "1.5": entries("new", said, first=1_000)}

    found = (await compared(stand))[1]

    assert (found["verdict"], found["decided_by"]) == (verdict, decided)
    assert (found["passed"], found["failed"]) == (verdict == "pass", verdict == "fail")
    assert found["judged"]["evaluator"] == "task_completion"
