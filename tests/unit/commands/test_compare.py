"""`spanwise compare`: exit codes, forms, and what is refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.commands import compare as command
from collector.config.plan import plan_from
from collector.config.tree import Config
from tests.support.asking import said
from tests.support.command import Ended, Run, settings
from tests.support.dialect_spans import SpanSpec, key_values, request, under
from tests.support.loopback import Reply, Stub, stub
from tests.support.recordings import requests, write
from tests.support.table import for_each

BASELINE = {"version": "1.4", "samples": 200, "fail_ratio": 0.08}
CANDIDATE = {"version": "1.5|x", "samples": 45, "fail_ratio": 0.0, "used": 40}
FOUND: dict[str, Any] = {
    "verdict": "pass",
    "reason": None,
    "passed": True,
    "failed": False,
    "next_look": None,
    "service": "shop",
    "agent": "clerk",
    "evaluator": "agent_reliability",
    "rank": 0.52,
    "rank_lower": 0.41,
    "rank_upper": 0.6,
    "sessions": ["s-1"],
    "baseline": {**BASELINE, "mean": 0.9, "lower": 0.88, "upper": 0.94},
    "candidate": {**CANDIDATE, "mean": 0.91, "lower": 0.85, "upper": 0.97},
}
ASKS = ("--service", "shop", "--candidate", "1.5")


def reply(**fields: Any) -> Reply:
    return Reply(200, json.dumps({**FOUND, **fields}))


@pytest.fixture
async def service() -> AsyncIterator[Stub]:
    async with stub() as made:
        made.answer = lambda _: reply()
        yield made


Ask = Callable[..., Awaitable[Ended]]


@pytest.fixture
def compare(service: Stub, run: Run) -> Ask:
    """Asks the service of two versions, with these arguments more."""
    return lambda *more: asyncio.to_thread(run, "compare", "--url", service.url, *ASKS, *more)


def compared(run: Run, old: Path, *more: object) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of `compare OLD --with ...`."""
    done = run("compare", old, "--with", *more, "--format", "json")
    return done.code, json.loads(done.out)


@pytest.mark.parametrize(
    ("verdict", "more", "code"),
    [
        ("pass", (), 0),
        ("fail", (), 1),
        ("inconclusive", (), 3),
        ("inconclusive", ("--inconclusive", "pass"), 0),
        ("inconclusive", ("--inconclusive", "fail"), 1),
        ("fail", ("--inconclusive", "pass"), 1),
    ],
)
async def test_the_exit_code_is_the_verdict(
    service: Stub, compare: Ask, verdict: str, more: tuple[str, ...], code: int
) -> None:
    service.answer = lambda _: reply(verdict=verdict)

    assert (await compare(*more)).code == code


async def test_it_asks_what_it_was_given_with_the_token(service: Stub, compare: Ask) -> None:
    await compare("--agent", "a b", "--baseline", "1.4", "--token", "t0ken")

    (asked,) = service.requests
    assert asked.path == (
        "/api/v1/compare?service=shop&agent=a+b&candidate=1.5&baseline=1.4"
        "&evaluator=agent_reliability&margin=0.1"
    )
    assert asked.headers["authorization"] == "Bearer t0ken"


async def test_it_waits_while_it_is_inconclusive(
    service: Stub, compare: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "EVERY", 0.01)
    service.replies = [reply(verdict="inconclusive", reason="undecided")] * 3

    assert (await compare("--wait", "30s")).code == 0
    assert len(service.requests) == 4


async def test_a_service_that_refuses_or_is_away_is_exit_2(service: Stub, compare: Ask) -> None:
    service.answer = lambda _: Reply(404, '{"error": {"message": "no service `shop` has scores"}}')

    refused, away = await compare(), await compare("--url", "http://127.0.0.1:1")

    assert refused.complaints == [f"{service.url}: HTTP 404: no service `shop` has scores"]
    away.assert_one_line("no answer")
    assert (refused.code, away.code) == (2, 2)


@for_each(
    "arguments,says",
    [
        (["--service", "shop"], "give --service and --candidate, or OLD... --with NEW"),
        (["old.otlp"], "recordings are compared as OLD... --with NEW"),
        (["--with", "new.otlp"], "recordings are compared as OLD... --with NEW"),
        ([*ASKS, "--wait", "soon"], "--wait: expected a duration"),
        ([*ASKS, "--margin", "0.9"], "--margin"),
        (["nowhere.otlp", "--with", "nowhere.otlp"], "nowhere.otlp: no such file or folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(run: Run, arguments: list[str], says: str) -> None:
    done = run("compare", *arguments)

    done.assert_one_line(says)
    assert done.code == 2


async def test_a_table_says_both_sides_and_the_worst_and_json_is_the_answer(compare: Ask) -> None:
    lines = (await compare()).out.splitlines()

    assert lines[1].split() == ["baseline", "1.4", "200", "0.90", "0.88", "to", "0.94", "8%"]
    assert lines[2].split()[:3] == ["candidate", "1.5|x", "45"]
    assert lines[3] == (
        "pass: agent_reliability of 1.5|x over the first 40 of 45 sessions against 200 of 1.4, rank 0.52"
    )
    assert lines[4] == "worst: s-1"
    assert json.loads((await compare("--format", "json")).out) == FOUND


@pytest.mark.parametrize(
    ("verdict", "kind"), [("pass", "notice"), ("fail", "error"), ("inconclusive", "warning")]
)
async def test_github_gets_an_annotation_and_a_summary(
    service: Stub,
    compare: Ask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdict: str,
    kind: str,
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    service.answer = lambda _: reply(verdict=verdict)

    out = (await compare("--format", "github")).out

    assert out.startswith(f"::{kind} title=Spanwise::{verdict}: ")
    summary = (tmp_path / "summary.md").read_text()
    assert f"### Spanwise: {verdict}\n" in summary
    assert "| candidate | 1.5\\|x | 45 | 0.91 | 0.85 to 0.97 | 0% |" in summary


# --- recordings ------------------------------------------------------------------------------------------------------


def recorded(path: Path, version: str, *, fails: bool, sessions: int = 24, first: int = 0) -> Path:
    """Sessions of one turn with two calls of a tool, which work or fail."""
    result = {} if fails else {"tool__call__result": "found"}
    ended: dict[str, Any] = {"status": 2, "message": "TimeoutError"} if fails else {}

    def turn(number: int) -> bytes:
        at = 1000 * number
        root = under(
            "gen_ai.",
            operation__name="invoke_agent",
            agent__name="clerk",
            agent__version=version,
            conversation__id=f"{version}-{number}",
            input__messages=said("user", f"Order {number}?"),
            output__messages=said("assistant", "It is on its way."),
        )
        call = under(
            "gen_ai.",
            operation__name="execute_tool",
            tool__name="find_order",
            tool__call__arguments=json.dumps({"id": number}),
            **result,
        )
        calls = (
            SpanSpec(id=n, parent=1, attributes=call, start=at + n, end=at + n + 1, **ended)
            for n in (2, 3)
        )
        whole = SpanSpec(id=1, attributes=root, start=at, end=at + 9)
        return request(whole, *calls, trace_id=f"{number + 1:032x}")

    write(path, map(turn, range(first, first + sessions)))
    return path


def test_recordings_of_a_release_that_fails_are_found_worse(run: Run, tmp_path: Path) -> None:
    old = recorded(tmp_path / "old.otlp", "1.4", fails=False)
    new = recorded(tmp_path / "new.otlp", "1.5", fails=True)
    more = recorded(tmp_path / "more.otlp", "1.4", fails=False, sessions=2)

    worse, found = compared(run, old, new)
    same, alike = compared(run, old, old, more)

    assert (worse, found["verdict"]) == (1, "fail")
    assert (found["baseline"]["version"], found["candidate"]["version"]) == ("1.4", "1.5")
    assert (found["service"], found["agent"]) == ("shop", "clerk")
    assert found["rank"] == 0.0
    assert found["candidate"]["used"] == 20
    (tool,) = found["changed"]["tools"]
    assert tool["failures"] == tool["uses"]
    assert tool["failures_before"] == 0
    assert found["changed"]["evaluators"][0]["rank"] == 0.0
    assert (same, alike["changed"]["tools"]) == (0, [])


def test_recordings_are_compared_by_the_scores_of_others_that_they_hold(
    run: Run, tmp_path: Path
) -> None:
    """Nothing else differs; each trace has a score of its own."""
    files: list[Path] = []
    for version, value in (("1.4", 0.8), ("1.5", 0.3)):
        file = recorded(tmp_path / f"{version}.otlp", version, fails=False)
        made = [ExportTraceServiceRequest.FromString(each) for each in requests(file)]
        for each in made:
            span = each.resource_spans[0].scope_spans[0].spans[0]
            event = span.events.add(name="gen_ai.evaluation.result")
            fields = {"gen_ai.evaluation.name": "Tone", "gen_ai.evaluation.score.value": value}
            event.attributes.extend(key_values(fields))
        write(file, (each.SerializeToString() for each in made))
        files.append(file)
    old, new = files

    code, worse = compared(run, old, new, "--evaluator", "tone")
    _, same = compared(run, new, new, "--evaluator", "tone")
    unknown = run("compare", old, "--with", new, "--evaluator", "ton")

    assert (code, worse["verdict"], worse["rank"]) == (1, "fail", 0.0)
    assert (worse["evaluator"], worse["changed"]["tools"]) == ("tone", [])
    assert same["verdict"] == "pass"
    unknown.assert_one_line("whose scores are within the recordings, got `ton`")
    assert unknown.code == 2


def test_a_judge_that_is_set_decides_over_recordings_whose_free_scores_are_alike(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tool works; the judge passes what 1.4 answered, and little of what 1.5 did."""
    old = recorded(tmp_path / "old.otlp", "1.4", fails=False)
    new = recorded(tmp_path / "new.otlp", "1.5", fails=False)
    scored = command.evaluate_recordings

    async def judged(config: Any, plan: Any, files: Any, said: Any, closed: Any) -> Any:
        def both(session: Any) -> None:
            (line, *_) = session.signals
            one = json.loads(line) | {"evaluator": "task_completion", "final": True}
            one["score"] = 0.2 if one["agent_version"] == "1.5" else 0.9
            session.signals.append(json.dumps(one).encode())
            closed(session)

        free = plan_from(Config(), only=[command.EVALUATOR])
        assert "task_completion" in {each.spec.name for each in plan}
        return await scored(Config(), free, files, said, both)

    monkeypatch.setattr(command, "evaluate_recordings", judged)

    judge = settings("judge.model=openai/any", "judge.api_key=none")
    code, found = compared(run, old, new, *judge)

    assert (code, found["verdict"], found["decided_by"]) == (1, "fail", "task_completion")
    assert found["judged"]["used"] == 20
    monkeypatch.undo()
    assert compared(run, old, new)[0] == 0, "without a judge the two are alike"
