"""The admin endpoints of the contract, on a real port with a log behind them."""

import json

import httpx

from collector.api.admin import build_app
from collector.base.families import RuntimeFamilies
from collector.base.lifecycle import Health
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.log.port import TRACES
from tests.support import api_records as make
from tests.support.api_stand import EVALUATORS, Stand, filled
from tests.support.service import ROOT
from tests.support.standings import standings


async def test_metrics_negotiate_by_accept(stand: Stand) -> None:
    answer = await stand.get("/metrics", accept="application/openmetrics-text")

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    assert (await stand.get("/metrics")).headers["content-type"].startswith("text/plain")


async def test_readiness_follows_start_and_stop_and_liveness_does_not(stand: Stand) -> None:
    states: list[tuple[int, int]] = []
    for started, has_worker, stopping in (
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
    ):
        stand.health.started, stand.health.stopping = started, stopping
        stand.health.has_worker = has_worker
        states.append(
            ((await stand.get("/readyz")).status_code, (await stand.get("/healthz")).status_code)
        )

    assert states == [(503, 200), (503, 200), (200, 200), (503, 200)]


async def test_connexitys_listing_is_the_registry(stand: Stand) -> None:
    """As the golden vector has the reference's."""
    vector = ROOT / "tests" / "data" / "golden" / "connexity_registry.json"
    (case,) = (json.loads(line) for line in vector.read_text().splitlines() if '"id"' in line)
    listing = (await stand.get("/config/available-metrics")).json()

    assert listing["count"] == 9
    for row, expected in zip(listing["data"], case["expected"]["metrics"], strict=True):
        assert expected.items() - {("has_rubric", True)} <= row.items()
        assert row["rubric"]
        assert row.keys() - expected.keys() == {"display_name", "description", "rubric"}


async def test_other_roles_have_metrics_and_health_without_an_index() -> None:
    app = build_app(
        config=Config(),
        exposition=lambda _: (b"x 1\n", "text/plain"),
        health=Health(RuntimeFamilies(Telemetry()).event_loop_lag),
    )
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        codes = {
            path: (await client.get(path)).status_code
            for path in ("/metrics", "/healthz", "/readyz", "/api/v1/agents", "/")
        }

    assert codes == {
        "/metrics": 200,
        "/healthz": 200,
        "/readyz": 503,
        "/api/v1/agents": 404,
        "/": 404,
    }


async def test_evaluators_are_listed(stand: Stand) -> None:
    listed = {"items": EVALUATORS, "external": [], "next": None}
    assert await stand.json("evaluators") == listed


WINDOW = {"mean": 0.14, "lower": 0.125, "upper": 0.5, "samples": 63}


async def test_agents_carry_the_numbers_of_the_gauges(stand: Stand) -> None:
    """The sessions in the index have means of their own: no answer shows them."""
    filled(stand)
    four = make.trace(4, session_id="s-4")
    stand.take_traces(four)
    stand.take_signals(make.session_signal(four, "agent_reliability", 0.2, revision=9))
    stand.standings = standings(0.14)

    agents = await stand.json("agents")

    assert agents["next"] is None
    assert agents["items"][0] == {
        "service": "support-bot",
        "agent": "planner",
        "agent_version": "1.4.2",
        "reliability": 0.14,
        "consistency": None,
        "sessions": 63,
        "traces": 3,
        "last_seen": "2023-11-14T22:13:25.500000Z",
        "headline": {"reliability": {**WINDOW, "since": None}, "consistency": None},
        "window": {"reliability": WINDOW, "consistency": None},
        "faults": [],
        "drops": [],
        "second_opinion": None,
        "failing_always": [],
        "differs": None,
        "detectors": [],
        "runaways": [],
    }
    assert [row["sessions"] for row in agents["items"]] == [63, None]


async def test_sessions_are_listed_newest_first(stand: Stand) -> None:
    filled(stand)

    sessions = await stand.json("sessions")

    assert [row["session_id"] for row in sessions["items"]] == ["s-2", "s-1"]
    assert sessions["items"][1] == {
        "service": "support-bot",
        "session_id": "s-1",
        "session_source": "session.id",
        "agent": "planner",
        "agent_version": "1.4.2",
        "started": "2023-11-14T22:13:21.000000Z",
        "last": "2023-11-14T22:13:23.500000Z",
        "traces": 2,
        "reliability": 0.8,
        "consistency": 0.6,
        "coverage": {"expected": 4, "present": 3},
        "closed": None,
        "question": "question 1",
        "work_baseline": None,
        "seconds": 3.0,
        "cost_usd": None,
        "tokens": {"input": None, "output": None},
        "errors": 0,
    }


async def test_a_session_says_why_it_closed_and_opens_afresh(stand: Stand) -> None:
    filled(stand)
    seen: list[str | None] = []

    async def state() -> str | None:
        return (await stand.json("sessions/s-1"))["closed"]

    stand.take_traces(make.closing_value())
    seen.append(await state())
    stand.take_traces(make.trace(7))
    seen.append(await state())
    # The same records once more, as after a crash.
    stand.api._index.take_traces(stand.log.history(TRACES)[-2:])
    seen.append(await state())

    assert seen == ["idle", None, None]


async def test_a_page_leads_to_the_next_of_what_was_asked_for(stand: Stand) -> None:
    for number in range(1, 4):
        stand.take_traces(make.trace(number, session_id=f"s-{number}"))
    filled(stand)

    first = await stand.json("sessions?agent=planner&limit=2")
    rest = await stand.json(f"sessions?agent=planner&cursor={first['next']}")

    found = [row["session_id"] for page in (first, rest) for row in page["items"]]
    assert (found, rest["next"]) == (["s-3", "s-2", "s-1"], None)


async def test_one_session_has_its_traces_in_order_with_their_signals(stand: Stand) -> None:
    filled(stand)

    session = await stand.json("sessions/s-1?service=support-bot")

    assert [turn["trace_id"] for turn in session["traces"]] == [f"{n:032x}" for n in (1, 2)]
    turn = session["traces"][0]
    assert (turn["input"], turn["output"], turn["duration"]) == ("question 1", "answer 1", 1.5)
    assert turn["started"] == "2023-11-14T22:13:21.000000Z"
    assert turn["status"] == "unset"
    assert [s["evaluator"] for s in turn["signals"]] == ["coherence", "step_efficiency"]
    assert [s["evaluator"] for s in session["signals"]] == [
        "agent_consistency",
        "agent_reliability",
    ]


async def test_several_services_with_one_session_id_are_a_list(stand: Stand) -> None:
    filled(stand)
    stand.take_traces(make.trace(8, service="other"))

    both = await stand.json("sessions/s-1")
    one = await stand.json("sessions/s-1?service=other")

    assert {row["service"] for row in both["items"]} == {"support-bot", "other"}
    assert one["service"] == "other"


async def test_a_session_id_may_hold_anything(stand: Stand) -> None:
    stand.take_traces(make.trace(1, session_id="a/b ?#ü"))

    session = await stand.get("/api/v1/sessions/a%2Fb%20%3F%23%C3%BC")

    assert session.json()["session_id"] == "a/b ?#ü"


async def test_a_trace_comes_with_its_spans_from_the_log(stand: Stand) -> None:
    filled(stand)

    answer = await stand.json(f"traces/{1:032x}")

    assert answer["trace"]["tool_calls"][0]["result"] == "rain"
    root, tool = answer["spans"]
    assert (root["spanId"], root["parentSpanId"]) == (f"{1:015x}1", "")
    assert tool["parentSpanId"] == root["spanId"]
    assert tool["attributes"]["gen_ai.tool.call.result"] == "rain <b>soon</b>"
    assert tool["resource"] == {"service.name": "support-bot"}
    assert [s["score"] for s in answer["signals"]] == [0.9, 0.4]


async def test_a_trace_outlives_its_record(stand: Stand) -> None:
    filled(stand)
    stand.log.release([record.position for record in stand.log.history(TRACES)])

    answer = await stand.json(f"traces/{1:032x}")

    assert answer["spans"] == []
    assert answer["trace"]["output"] == "answer 1"
    assert answer["trace"]["truncated"] is True


async def test_a_revised_trace_replaces_itself(stand: Stand) -> None:
    filled(stand)
    stand.take_traces(make.trace_value(make.trace(1, output="later"), revision=1))
    stand.take_traces(make.trace_value(make.trace(1, output="stale"), revision=0))

    session = await stand.json("sessions/s-1")

    assert session["traces"][0]["output"] == "later"
    assert session["traces"][0]["revision"] == 1
    assert len(session["traces"]) == 2


async def test_signals_are_filtered_and_paged(stand: Stand) -> None:
    filled(stand)

    async def found(query: str) -> list[tuple[str | None, str]]:
        page = await stand.json(f"signals?{query}")
        return [(s["session_id"], s["evaluator"]) for s in page["items"]]

    assert len(await found("")) == 9
    assert await found("session_id=s-2&evaluator=coherence") == [("s-2", "coherence")]
    assert len(await found(f"trace_id={1:032x}")) == 2
    assert await found(f"trace_id={1:032x}&session_id=s-2") == []
    for query in ("", "session_id=s-1&"):
        whole = await found(query)
        page = await stand.json(f"signals?{query}limit=4")
        rest = await found(f"{query}limit=400&cursor={page['next']}")
        assert [(s["session_id"], s["evaluator"]) for s in page["items"]] + rest == whole


async def test_signals_come_as_they_were_written(stand: Stand) -> None:
    signal = make.signal(make.trace(1))
    stand.take_signals(signal)

    (found,) = await stand.items("signals")

    assert found == json.loads(make.value(signal))


async def test_signals_before_their_trace_are_found_and_find_their_session(stand: Stand) -> None:
    stand.take_signals(make.signal(make.trace(1)))
    before = await stand.json("sessions/s-1")
    stand.take_traces(make.trace(1))
    after = await stand.json("sessions/s-1")

    assert (before["traces"][0]["input"], after["traces"][0]["input"]) == (None, "question 1")
    assert before["traces"][0]["signals"] == after["traces"][0]["signals"] != []
    assert before["traces"] != after["traces"]
    assert after["closed"] is None
