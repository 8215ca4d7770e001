"""What is said of an agent beside its means: a fault and a fall name the sessions that show it, the worst first."""

import pytest
from msgspec.structs import replace

from collector.config.tree import AgentWindow
from collector.records.standing import AgentLabels, Fault, Standing
from collector.records.windows import WindowEntry
from collector.watch.windows.standings import Headline, standing_of, with_worst
from collector.watch.windows.target import Labels, Target
from evaluators.model import Scope
from tests.support.standings import drop

AGENT = ("support-bot", "planner")


def entry(session: str, time: float, score: float, *, covered: bool = True) -> WindowEntry:
    return WindowEntry(session, time, 0, False, f"id of {session}", score, covered)


ENTRIES = (
    entry("before", 5.0, 0.0),
    entry("bad", 20.0, 0.2),
    entry("worst", 10.0, 0.1),
    entry("as-bad-and-newer", 30.0, 0.2),
    entry("good", 40.0, 1.0),
    entry("unseen", 41.0, 0.0, covered=False),
)


def entries(agent: AgentLabels, evaluator: str, scope: Scope) -> tuple[WindowEntry, ...]:
    assert (agent, evaluator, scope) == (AGENT, "agent_reliability", "session")
    return ENTRIES


def test_a_fall_names_the_lowest_scores_since_it_began() -> None:
    fallen = Standing(service=AGENT[0], agent=AGENT[1], drops=(drop(since=10.0),))

    found = with_worst({AGENT: fallen}, entries)[AGENT]

    assert found.drops[0].worst == ("worst", "as-bad-and-newer", "bad")


def test_a_rise_names_none() -> None:
    risen = Standing(service=AGENT[0], agent=AGENT[1], drops=(drop(direction="better"),))

    assert with_worst({AGENT: risen}, entries)[AGENT] == risen


def test_a_fault_names_its_failed_sessions_by_their_reliability() -> None:
    fault = Fault(
        fault="tool_failed",
        tool="find_order",
        since=10.0,
        uses=9,
        failures=5,
        uses_before=40,
        failures_before=0,
        sessions=("no-score-yet", "good", "as-bad-and-newer", "bad", "worst"),
    )
    faulty = Standing(service=AGENT[0], agent=AGENT[1], faults=(fault,))

    found = with_worst({AGENT: faulty}, entries)[AGENT]

    assert found.faults[0].worst == ("worst", "as-bad-and-newer", "bad")


def test_a_version_with_few_sessions_since_a_change_keeps_the_mean_of_its_window() -> None:
    target = Target(Labels(*AGENT, "agent_reliability", "session"), AgentWindow())
    # the last sessions of version 1 end after the release of version 2, as those of a conversation that goes on do
    for version, count, time, score in (("1", 7, 1.0, 1.0), ("1", 3, 9.0, 0.0), ("2", 4, 9.0, 0.2)):
        for number in range(count):
            one = entry(f"{version}-{time}-{number}", time, score)
            target.offer(replace(one, version=version), version, is_compared=True)

    found = standing_of([Headline(target, None, 5.0)], 10.0)

    assert {each.agent_version: each.reliability for each in found.versions} == pytest.approx(
        {"1": 0.7, "2": 0.2}
    )


def test_an_agent_whose_sessions_have_all_left_the_window_has_no_mean() -> None:
    target = Target(Labels(*AGENT, "agent_reliability", "session"), AgentWindow())

    found = standing_of([Headline(target, None, 5.0)], 10.0)

    assert found == Standing(service=AGENT[0], agent=AGENT[1])
