"""Over random histories, every place says the same of what fails: "n of m since, k of l before"."""

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.api.page.agent_rows import fault_row
from collector.api.page.two_sides_pages import tools_compared
from collector.commands import cli
from collector.notices.alarms import LiveWords
from collector.notices.series import Series, SeriesSample
from collector.records.comparison import VersionSide, comparison, in_words, with_faults
from collector.records.standing import Fault
from collector.records.traces import TurnUses, WorkRecord
from collector.records.what_changed import (
    SessionSide,
    ToolCounts,
    counted_by_version,
    failed_by_tool,
    of_tools,
    tool_counts,
    what_changed,
)
from collector.records.what_changed import in_words as changed_in_words
from collector.slo.alerts import FAULT
from collector.watch.faults.faults import Faults
from evaluators.matching.tool_uses import tool_uses
from evaluators.model import ToolCall
from evaluators.uses import SessionUses
from tests.support import api_records as make
from tests.support.api_stand import Stand
from tests.support.recordings import record_tools
from tests.support.standings import standings

Turns = list[dict[str, bool]]
AGENT = ("support-bot", "planner")
TOOLS: tuple[str, ...] = ("find_order", "get_weather")
COUNTS = ("failures", "uses", "failures_before", "uses_before")
_NUMBERS = re.compile(r"(\d+) of (?:the last )?(\d+) sessions.*?, (?:in )?(\d+) of (\d+) before")
NOW = 1_700_000_100.0  # 22:15 UTC


def alert_of(fault: Fault) -> str:
    """The alert's text over the gauges of the fault, as a notice has it."""
    labels = {"service": "shop", "agent": "clerk", "fault": fault.fault, "tool": fault.tool}
    series = Series(())
    periods = {
        "since": (fault.uses, fault.failures),
        "before": (fault.uses_before, fault.failures_before),
    }
    samples = [
        SeriesSample(f"spanwise_fault_{name}", {**labels, "period": period}, float(value))
        for period, values in periods.items()
        for name, value in zip(("uses", "failures"), values, strict=True)
    ]
    since = SeriesSample("spanwise_fault_since_timestamp_seconds", labels, fault.since)
    series.take((*samples, since), NOW)
    text = FAULT.description(LiveWords(series, labels, 1.0))
    assert "22:14 UTC, 1m 0s ago" in text
    return text


def session(tools: Mapping[str, bool]) -> SessionSide:
    return SessionSide(frozenset(), tools, None, None)


def side(rates: list[int]) -> st.SearchStrategy[list[SessionSide]]:
    tool = st.dictionaries(st.sampled_from(TOOLS), st.sampled_from([False, *[True] * rates[0]]))
    return st.lists(tool.map(session), min_size=20, max_size=60)


def numbers(text: str) -> tuple[int, ...]:
    found = _NUMBERS.search(text)
    assert found is not None, text
    return tuple(map(int, found.groups()))


def counted(tool: str, before: list[SessionSide], since: list[SessionSide]) -> tuple[int, ...]:
    """By hand."""
    both = [[each.tools[tool] for each in some if tool in each.tools] for some in (since, before)]
    return sum(both[0]), len(both[0]), sum(both[1]), len(both[1])


def compared(counts: Mapping[str, ToolCounts]) -> dict[str, tuple[int, ...]]:
    """As `/compare` shows them."""
    return {row["tool"]: (*row["since"], *row["before"]) for row in tools_compared(counts)}


@given(before=side([0]), since=side([9]))
def test_verdict_words_and_page_count_alike(
    before: list[SessionSide], since: list[SessionSide]
) -> None:
    changed = what_changed(before, since)
    lines = changed_in_words(changed)
    page = compared(tool_counts(before, since))
    nothing = VersionSide(None, ())
    verdict = with_faults(comparison(nothing, nothing, service=None, agent=None), changed)

    for row, line in zip(changed["tools"], lines, strict=False):
        wanted = counted(row["tool"], before, since)
        assert tuple(row[name] for name in COUNTS) == wanted
        assert numbers(line) == page[row["tool"]] == wanted
    if changed["tools"]:
        first = changed["tools"][0]["tool"]
        assert verdict["verdict"] == "fail"
        assert numbers(verdict["reason"]) == numbers(in_words(verdict)) == page[first]
    else:
        assert verdict["verdict"] == "inconclusive"


@given(counts=st.tuples(*[st.integers(0, 10_000)] * 4))
def test_banner_and_verdict_say_what_the_watch_counted(counts: tuple[int, int, int, int]) -> None:
    fault = Fault(
        fault="tool_failed",
        tool="find_order",
        since=NOW - 60,
        **dict(zip(COUNTS, counts, strict=True)),
    )
    nothing = VersionSide(None, ())
    verdict = with_faults(comparison(nothing, nothing, service=None, agent=None), None, (fault,))

    assert numbers(fault_row(fault, NOW)["numbers"]) == counts
    assert numbers(verdict["reason"]) == counts
    assert numbers(alert_of(fault)) == counts


def turns(version: str) -> st.SearchStrategy[list[tuple[str, Turns]]]:
    """Sessions of a version, each of some turns that use tools, which fail or do not."""
    turn = st.dictionaries(st.sampled_from(TOOLS), st.booleans())
    return st.lists(
        st.lists(turn, min_size=1, max_size=3).map(lambda made: (version, made)), max_size=40
    )


def calls_of(turn: Mapping[str, bool]) -> list[ToolCall]:
    return [ToolCall(name=tool, error="no" if bad else None) for tool, bad in turn.items()]


def watched(history: list[tuple[str, Turns]]) -> Faults:
    """The fault watches after these sessions, whose turns come one after the other."""
    faults, offset = Faults(settle=1e9), 0
    faults.log_time.own(0)
    for number, (version, made) in enumerate(history):
        for at, turn in enumerate(made):
            used = TurnUses(
                trace_id=f"{number} {at}",
                revision=0,
                uses=SessionUses(tools=tool_uses(calls_of(turn))),
            )
            work = WorkRecord(
                service=AGENT[0],
                agent=AGENT[1],
                agent_version=version,
                session_id=f"s-{number}",
                session_source="session.id",
                seen=float(offset),
                revision=at,
                digest="d",
                used=used,
            )
            faults.offer(AGENT, work, float(offset), 0, offset)
            offset += 1
    for _ in faults.entering({0: offset + 1.0}):
        pass
    return faults


def reasons_of(changed: Mapping[str, Any]) -> list[str]:
    return [
        f"fault: tool_failed {each['tool']}, {each['failures']} of {each['uses']} sessions,"
        f" {each['failures_before']} of {each['uses_before']} before"
        for each in changed["tools"]
    ]


@given(old=turns("1"), new=turns("2"), order=st.randoms(use_true_random=False))
def test_watches_and_index_count_the_versions_alike(
    old: list[tuple[str, Turns]], new: list[tuple[str, Turns]], order: Random
) -> None:
    history = [*old, *new]
    order.shuffle(history)
    counts = counted_by_version([*watched(history).of(AGENT).by_version()], "1", "2")
    before, since = (
        [
            session(failed_by_tool(call for turn in made for call in calls_of(turn)))
            for version, made in history
            if version == each
        ]
        for each in ("1", "2")
    )

    if of_tools(counts) is not None:
        assert of_tools(counts) == tool_counts(before, since)
        assert what_changed(before, since, of_tools(counts)) == what_changed(before, since)
        assert compared(of_tools(counts) or {}) == compared(tool_counts(before, since))
    nothing = VersionSide(None, ())
    ranks = comparison(nothing, nothing, service=None, agent=None)
    changed = what_changed(before, since, of_tools(counts))
    by_watches, by_sessions = with_faults(ranks, None, (), counts), with_faults(ranks, changed)
    if by_watches["failed"]:  # they know clumps, and ask for more
        assert by_watches["reason"] in reasons_of(changed)
        assert by_sessions["failed"]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=side([0]), since=side([9]))
def test_commands_count_recordings_as_the_watches_count_the_versions(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    before: list[SessionSide],
    since: list[SessionSide],
) -> None:
    old = record_tools(tmp_path / "old.otlp", (each.tools for each in before))
    new = record_tools(tmp_path / "new.otlp", (each.tools for each in since), first=100)
    asked = [str(old), "--with", str(new), "--format", "json"]
    assert cli.main(["doctor", *asked]) == 0
    changed = json.loads(capsys.readouterr().out)["changed"]
    cli.main(["compare", *asked])
    verdict = json.loads(capsys.readouterr().out)
    both = [*(("1", each) for each in before), *(("2", each) for each in since)]
    watches = watched([(version, [{**each.tools}]) for version, each in both])
    counts = of_tools(counted_by_version([*watches.of(AGENT).by_version()], "1", "2"))

    if counts is not None:
        assert changed["tools"] == what_changed(before, since, counts)["tools"]
    for row in changed["tools"]:
        assert tuple(row[name] for name in COUNTS) == counted(row["tool"], before, since)
    assert (verdict["verdict"] == "fail") == bool(changed["tools"])
    if changed["tools"]:
        assert verdict["changed"]["tools"] == changed["tools"]
        assert numbers(verdict["reason"]) == counted(changed["tools"][0]["tool"], before, since)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.tuples(*[st.integers(0, 10_000)] * 4).map(
        lambda each: (*sorted(each[:2]), *sorted(each[2:]))  # no more fail than there are
    )
)
async def test_api_and_rendered_pages_say_what_the_watch_counted(
    stand: Stand, counts: tuple[int, int, int, int]
) -> None:
    named = dict(zip(COUNTS, counts, strict=True))
    fault = Fault(fault="tool_failed", tool="find_order", since=make.START, **named)
    stand.standings = {AGENT: replace(standings(0.9)[AGENT], faults=(fault,))}

    (agent,) = await stand.items("agents")
    pages = [await stand.text(path) for path in ("/", "/agent?service=support-bot&agent=planner")]
    both = re.findall(r'id="both-sides" href="(.*?)"', pages[1])
    sides = await stand.text(unescape(both[0]))

    assert {name: agent["faults"][0][name] for name in COUNTS} == named
    assert [numbers(page) for page in pages] == [counts, counts]
    failed, uses, failed_before, uses_before = counts
    rows = re.findall(r'tool=find_order">find_order</a></td>(.*?)</tr>', sides)
    cells = [re.findall(r'<td class="number">(.*?)</td>', row) for row in rows]
    shown = [
        f"{bad} of {of} sessions" if of else "not used"
        for bad, of in ((failed_before, uses_before), (failed, uses))
    ]
    assert cells == ([shown] if failed or failed_before else [])


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    made.take_session(1, 0.8)
    yield made
    made.close()
