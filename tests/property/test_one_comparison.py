"""Over random histories, every place says the same of what fails: "n of m since, k of l before"."""

import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from collector.api.page.agent_rows import fault_row
from collector.api.page.two_sides_pages import tools_compared
from collector.notices.alarms import LiveWords
from collector.notices.series import Series, SeriesSample
from collector.records.comparison import VersionSide, comparison, in_words, with_faults
from collector.records.standing import Fault
from collector.records.what_changed import SessionSide, what_changed
from collector.records.what_changed import in_words as changed_in_words
from collector.slo.alerts import FAULT

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


@given(before=side([0]), since=side([9]))
def test_verdict_words_and_page_count_alike(
    before: list[SessionSide], since: list[SessionSide]
) -> None:
    changed = what_changed(before, since)
    lines = changed_in_words(changed)
    page = {row["tool"]: (*row["since"], *row["before"]) for row in tools_compared(before, since)}
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
