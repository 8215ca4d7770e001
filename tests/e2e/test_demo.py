"""The demo beside a real Prometheus with the rules and settings of compose.yaml: a drop is noticed, alerts, is over."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest

from collector.slo.rules import PAGE
from tests.support.agents import Turn, request, spans
from tests.support.compose import environment, services
from tests.support.dashboard_panels import Board
from tests.support.openai_server import OpenAiServer
from tests.support.processes import free_ports
from tests.support.prometheus import Prometheus
from tests.support.sender import send
from tests.support.service import ROOT, Service, children

SERVICE = "shop-bot"
SETTINGS = (
    "windows.trace.root_grace=300ms",
    "windows.trace.glance=500ms",
    "windows.session.idle=2s",
    "slo.objective=0.9",
    "judge.attempts=1",
    "judge.sample=0.7",
    "evaluators.helpfulness.enabled=true",
    "judge.price.input=1",
    "judge.price.output=1",
    "judge.budget.usd_per_day=5",
    "judge.budget.calls_per_minute=600",
    "judge.cache=0",
)


class EverythingOn:
    """A service with a judge, a budget, an objective and a sink that is away, and its agent.

    Each `go_on` is one more session: task runs, late spans, gaps, errors of the judge, a trace that runs away, spend.
    """

    def __init__(self, folder: Path) -> None:
        self._judge = OpenAiServer()
        (nobody_listens,) = free_ports(1)
        self.service = Service(
            folder,
            *SETTINGS,
            *self._judge.settings,
            f"sinks.otlp.endpoint=http://127.0.0.1:{nobody_listens}",
        )
        self._sessions = count()

    def __enter__(self) -> Self:
        """Started, and one open trace runs away."""
        self._judge.__enter__()
        try:
            self.service.start()
            *under_way, _ = spans(Turn(service=SERVICE, session="loop", number=0, calls=14))
            send(self.service.grpc, request(SERVICE, under_way))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Ended, both."""
        self.service.__exit__(kind)
        self._judge.__exit__(None, None, None)

    def go_on(self) -> None:
        """One more session: a run of a task, every third one fails. The judge's first answers cannot be read.

        The model call of the session before arrives again under another id, long after its trace has closed.
        """
        number = next(self._sessions)
        self._judge.mode = "garbage" if self._judge.answered < 20 else "good"
        turn = Turn(service=SERVICE, session=f"s-{number}", number=number, fails=number % 3 == 0)
        made = spans(turn)
        made[-1].attributes.add(key="spanwise.task.id").value.string_value = "refund"
        made[-1].attributes.add(key="spanwise.task.success").value.bool_value = not turn.fails
        without_session = spans(Turn(service=SERVICE, session="", number=number))
        send(self.service.grpc, request(SERVICE, made), request(SERVICE, without_session))
        if number >= 3:
            late = spans(Turn(service=SERVICE, session=f"s-{number - 3}", number=number - 3))[0]
            late.span_id = late.span_id[::-1]
            send(self.service.grpc, request(SERVICE, [late]))


pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

README = ROOT / "README.md"
AGENTS_PAGE = "service=support-bot&agent=order-desk"
RULES = ROOT / "helm" / "spanwise" / "files" / "rules.yaml"
DROP, FAULT, RUNAWAY = "AgentScoreDrop", "AgentFault", "AgentRunaway"
RELIABILITY = "spanwise_agent_reliability_ratio"
PATIENCE = 400.0
"""Seconds for what the demo does within one or two minutes on an idle machine."""
CLEARED = re.compile(r"cleared +(\w+)")
NOTICED = re.compile(r"noticed +(\w+)")
AGENT = {"service": "support-bot", "agent": "order-desk"}
FAILED = {**AGENT, "fault": "tool_failed", "tool": "find_order"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The demo and a service that has what it has not, which a Prometheus scrapes every second."""

    demo: Service
    everything_on: EverythingOn
    prometheus: Prometheus
    board: Board
    alert: dict[str, Any]
    """That of the demo's fault, seen while it stood: the story goes on while tests run."""

    def said(self) -> str:
        """What the demo has written so far."""
        return self.demo.output.read_text()

    def wait_for(self, what: str, holds: Callable[[], Any]) -> Any:
        """Within a time that a busy machine needs."""
        return self.prometheus.wait_for(what, holds, PATIENCE)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("demo")
    service = services()["demo"]
    (command,) = service["command"]
    given = {**environment(service), "SPANWISE_ADMIN__HOST": "127.0.0.1"}
    rules = RULES.read_text()
    assert PAGE in rules
    with (
        Service(folder / "not-used", command=command, environment=given) as demo,
        EverythingOn(folder / "everything-on") as other,
        Prometheus(
            folder / "prometheus",
            demo.admin,
            rules.replace(PAGE, demo.admin),
            others=[other.service.admin],
        ) as prometheus,
    ):
        board = Board(prometheus)

        def fires() -> dict[str, Any] | None:
            found = alerts(prometheus, FAULT, FAILED)
            return next((each for each in found if each["state"] == "firing"), None)

        alert = prometheus.wait_for("the alert", fires, PATIENCE)
        yield Stand(demo=demo, everything_on=other, prometheus=prometheus, board=board, alert=alert)


def alerts(prometheus: Prometheus, name: str, wanted: dict[str, str]) -> list[dict[str, Any]]:
    """The active alerts of this name with these labels."""
    return [each for each in prometheus.alerts(name) if each["labels"].items() >= wanted.items()]


def test_the_regression_is_seen_by_version_and_as_an_alert_that_says_what_happened(
    stand: Stand,
) -> None:
    alert = stand.alert

    means = f'avg_over_time({RELIABILITY}{{agent="{AGENT["agent"]}"}}[1h])'

    def by_versions() -> dict[str, float]:
        return {labels["agent_version"]: value for labels, value in stand.prometheus.query(means)}

    stand.wait_for("scores of the release", lambda: "1.5.0" in by_versions())
    by_version = by_versions()
    assert by_version["1.4.2"] > by_version["1.5.0"] + 0.3
    assert alert["labels"] == {**FAILED, "alertname": FAULT, "severity": "page"}
    said = alert["annotations"]
    words = "find_order fails"
    assert f"order-desk (support-bot): {words}" in said["summary"]
    assert re.search(rf"{words} in \d+ of \d+ sessions since", said["description"])
    assert "unknown" not in said["description"]
    assert "support-bot" in stand.demo.text(said["page"].removeprefix(stand.demo.admin))
    stand.wait_for("said", lambda: re.search(r"noticed +agent_reliability", stand.said()))
    # The story goes on meanwhile: it is looked for in all that was scraped, a moment in which the fault fires alone.
    alone = (
        'max_over_time((ALERTS{alertname="AgentFault",alertstate="firing",agent="order-desk"}'
        ' unless on (service, agent) ALERTS{alertname="AgentScoreDrop"})[30m:1s])'
    )
    stand.wait_for(
        "the drop gives way to the fault that explains it", lambda: stand.prometheus.query(alone)
    )


def verdict(stand: Stand, version: str) -> dict[str, Any]:
    """What a pipeline learns of a release."""
    asked = f"/api/v1/compare?service=support-bot&agent=order-desk&candidate={version}"
    return stand.demo.get(asked)


def test_a_pipeline_stops_the_worse_release_at_its_first_looks(stand: Stand) -> None:
    """The judge reads a share of its sessions, and the free scores too few of them for a rank."""

    def decided() -> dict[str, Any] | None:
        seen = verdict(stand, "1.5.0")
        return seen if seen["verdict"] == "fail" and seen["judged"]["used"] else None

    found = stand.wait_for("a verdict", decided)

    assert found["judged"]["used"] in (20, 40)
    assert found["baseline"]["version"] == "1.4.2"
    assert found["judged"]["rank_upper"] < 0.5
    tools = [each["tool"] for each in found["changed"]["tools"]]
    assert tools[0] == "find_order", "what changed is said with the verdict"


def test_an_exemplar_leads_from_a_failing_counter_to_the_trace_and_its_session(
    stand: Stand,
) -> None:
    failing = f'spanwise_evaluations_total{{outcome="fail",scope="trace",agent="{AGENT["agent"]}"}}'
    found = stand.wait_for("exemplars", lambda: stand.prometheus.exemplars(failing))

    series, exemplar = found[-1]
    trace_id = exemplar["trace_id"]
    trace_page = stand.demo.shown(trace_id)
    assert series["outcome"] == "fail"
    failed = [each["evaluator"] for each in trace_page["signals"] if each["success"] is False]
    assert series["evaluator"] in failed
    page = stand.demo.text(f"/trace?id={trace_id}")
    assert trace_id in page
    assert AGENT["agent"] in page
    (session,) = set(re.findall(r'href="(/session\?[^"#]+)', page))
    assert f'id="trace-{trace_id}"' in stand.demo.text(unescape(session))


def test_an_open_trace_that_repeats_a_call_alerts_until_it_closes(stand: Stand) -> None:
    turn = Turn(service="loop-bot", session="loop", number=0, loops=True, calls=14)
    *under_way, root = spans(turn)
    # The span that names the agent ends last: until then the service's name stands for it.
    wanted = {"service": "loop-bot", "agent": "loop-bot", "reason": "repeated_calls"}

    send(stand.demo.grpc, request("loop-bot", under_way))

    def raised() -> list[dict[str, Any]]:
        return [
            each
            for each in stand.prometheus.alerts(RUNAWAY)
            if each["labels"]["service"] == "loop-bot"
        ]

    found = stand.wait_for("the alert", raised)
    send(stand.demo.grpc, request("loop-bot", [root]))
    stand.wait_for("resolved", lambda: not raised())

    assert [each["state"] for each in found] == ["firing"]
    assert [each["labels"] for each in found] == [
        {**wanted, "alertname": RUNAWAY, "severity": "page"}
    ]


def test_every_query_of_the_dashboard_has_data_that_its_unit_fits(stand: Stand) -> None:
    def answered() -> bool:
        stand.everything_on.go_on()
        return not stand.board.unanswered()

    try:
        stand.wait_for("data in every panel", answered)
    except AssertionError as error:
        raise AssertionError(f"without data: {stand.board.unanswered()}") from error

    assert stand.board.misfits() == []


def test_the_dashboard_offers_and_shows_what_is_chosen(stand: Stand) -> None:
    agents = {AGENT["agent"], "support"}
    stand.everything_on.go_on()

    stand.wait_for("the agents", lambda: stand.board.offered("agent") >= agents)
    chosen = stand.wait_for("one's", lambda: stand.board.shown("Agents, Traces", agent="support"))

    assert stand.board.offered("job") == {"spanwise"}
    services = {AGENT["service"], SERVICE}
    stand.wait_for("the services", lambda: stand.board.offered("service") >= services)
    assert {labels["agent"] for labels, _ in chosen} == {"support"}


def shown() -> list[str]:
    """The lines that README shows, as patterns: times, counts, ranks and ids differ from run to run."""
    block = re.findall(
        r"^```\n( +0 s  good .*?)^```", README.read_text(), re.MULTILINE | re.DOTALL
    )[0]
    lines = [re.escape(line.partition(" s  ")[2]) for line in block.splitlines()]
    changing = (
        (r"127\\\.0\\\.0\\\.1:\d+", r"127\.0\.0\.1:\\d+"),
        (r"id=[0-9a-f]{32}", "id=[0-9a-f]{32}"),
        (r"after\\ \d+", r"after \\d+"),
        (r"rank\\ 0\\\.\d\d", r"rank 0\.\\d\\d"),
        (r"same\\ \d+", r"same \\d+"),
        (r"\d+\\ of\\ \d+", r"\\d+ of \\d+"),
        (r"0\\\.\d\d\\ \\\->\\ 0\\\.\d\d", r"0\.\\d\\d -> 0\.\\d\\d"),
        (r"over\\ \d+", r"over \\d+"),
    )
    for pattern, by in changing:
        lines = [re.sub(pattern, by, line) for line in lines]
    return [rf"^ *\d+ s  {line}$" for line in lines]


def failed_in(stand: Stand, trace_id: str) -> list[str]:
    """The evaluators that the trace did not pass, as far as they are known."""
    trace_page = stand.demo.shown(trace_id)["signals"]
    return [each["evaluator"] for each in trace_page if each["success"] is False]


def test_the_story_goes_as_readme_shows_it_with_addresses_of_the_page(stand: Stand) -> None:
    so_far = shown()[:5]
    for line in so_far:
        stand.wait_for(line, lambda line=line: re.search(line, stand.said(), re.MULTILINE))

    (runaway,) = re.findall(r"/trace\?id=([0-9a-f]{32})", stand.said())
    assert "order-desk" in stand.demo.text(f"/agent?{AGENTS_PAGE}")
    assert "find_order" in stand.demo.text(f"/trace?id={runaway}")
    # Its own scores come from one room, this one from another: in either order.
    stand.wait_for("it did not pass", lambda: "runaway" in failed_in(stand, runaway))


def test_the_alert_and_the_drop_are_over_once_the_next_release_has_fixed_it(stand: Stand) -> None:
    stand.wait_for("fixed", lambda: "  fixed " in stand.said())
    stand.wait_for("resolved", lambda: not alerts(stand.prometheus, FAULT, AGENT))
    before, _ = stand.said().split("  fixed ")
    dropped = set(NOTICED.findall(before))
    stand.wait_for("said", lambda: set(CLEARED.findall(stand.said())) >= dropped)

    worse, fixed = verdict(stand, "1.5.0"), verdict(stand, "1.5.1")
    assert worse["verdict"] == "fail", "what was decided stays"
    # A release that is as good is stopped in 4 of 100 runs, so its verdict is not asked for.
    bad, good = (each["judged"]["rank"] for each in (worse, fixed))
    assert None in (bad, good) or good > bad + 0.1
    assert "agent_reliability" in dropped
    assert "agent_reliability" not in CLEARED.findall(before)


def test_a_release_that_is_politely_wrong_pages_once_the_judge_agrees(stand: Stand) -> None:
    page = {**AGENT, "severity": "page"}
    for line in shown():
        stand.wait_for(line, lambda line=line: re.search(line, stand.said(), re.MULTILINE))

    stand.wait_for("agrees", lambda: "  judge " in stand.said().split("  wrong ")[1])
    stand.wait_for(
        "the page",
        lambda: [a for a in alerts(stand.prometheus, DROP, page) if a["state"] == "firing"],
    )

    agent, *_ = stand.demo.get("/api/v1/agents")["items"]  # a row for each version
    opinion = agent["second_opinion"]
    assert (opinion["verdict"], opinion["wanted"]) == ("confirmed", 40)
    assert opinion["before"] > opinion["after"] + 0.2
    assert not alerts(stand.prometheus, FAULT, AGENT)
    assert "noticed" in stand.said().split("  wrong ")[1]


def test_ctrl_c_ends_every_process_and_leaves_no_data(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    mine = tmp_path / "mine"
    demo = Service(mine, command="demo", environment={"TMPDIR": str(temporary)}).start()
    processes = {demo.pid, *children(demo.pid)}
    try:
        demo.wait_for("the agent", lambda: "good" in demo.output.read_text())
        demo.wait_for("its gauge", lambda: RELIABILITY in "".join(demo.metrics()))
        processes |= set(children(demo.pid))
        its_own = [each.name for each in temporary.iterdir()]
    finally:
        os.killpg(demo.pid, signal.SIGINT)  # Ctrl-C reaches the whole group
    code = demo.wait(60)

    assert code == 0
    demo.wait_for("every process has ended", lambda: not any(map(is_running, processes)), 10)
    assert "Traceback" not in demo.output.read_text()
    assert any(each.startswith("spanwise-demo-") for each in its_own)
    assert not [each for each in temporary.iterdir() if each.name.startswith("spanwise-demo-")]
    assert not mine.exists()


def is_running(pid: int) -> bool:
    """Whether the process exists and has not ended; one that has ended may wait for its parent to notice."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
