"""The runs that `publish` keeps, and the gauges made of them."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.base.errors import ConfigError, LogUnavailable
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.records.traces import RunRecord
from collector.watch.task_runs import Said, TaskRuns
from tests.support.publisher import Publisher, closed_trace
from tests.support.state_tables import give_back

PASS_AT, PASS_POW, LEFT_OUT = "task_pass_at_k_ratio", "task_pass_pow_k_ratio", "tasks_left_out"


def a_run(task: str, at: int, success: bool | None = True, **fields: Any) -> RunRecord:
    defaults: dict[str, Any] = {"service": "bot", "agent": "planner", "session_id": f"{task}-{at}"}
    return RunRecord(task_id=task, ended=float(at), success=success, **{**defaults, **fields})


def gauges(publisher: Publisher) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for metric in publisher.telemetry.registry.collect()
        for sample in metric.samples
        if sample.name.startswith(("spanwise_task_pass", "spanwise_tasks_"))
    }


def value(publisher: Publisher, name: str, k: int, agent: str = "planner") -> float | None:
    return publisher.value(name, service="bot", agent=agent, k=str(k))


async def read_again(publisher: Publisher) -> Publisher:
    """The process after it, which has read everything."""
    after = publisher.successor()
    await after.read_traces()
    return after


async def test_the_gauges_say_what_the_newest_runs_of_each_task_passed() -> None:
    publisher = Publisher()

    await publisher.append(
        *(a_run(task, at, at < c) for task, c in (("a", 3), ("b", 1)) for at in range(4))
    )

    for k, pass_pow, pass_at in ((1, 0.5, 0.5), (3, 0.125, 0.875)):
        assert value(publisher, PASS_POW, k) == pytest.approx(pass_pow)
        assert value(publisher, PASS_AT, k) == pytest.approx(pass_at)
        assert value(publisher, LEFT_OUT, k) == 0
    assert value(publisher, PASS_AT, 5) is None
    assert value(publisher, LEFT_OUT, 5) == 2


async def test_after_a_restart_no_number_is_better_than_an_old_one() -> None:
    publisher = Publisher()
    await publisher.append(a_run("a", 1))
    after = publisher.successor()

    await after.exporter.restore()
    assert gauges(after) == {}
    await after.read_traces()
    assert gauges(after) == gauges(publisher)


async def test_a_crash_between_the_tasks_and_the_commit_changes_nothing() -> None:
    """As on Kafka: the windows are there, the batch is read again."""
    publisher = Publisher()
    await publisher.read_traces()
    publisher.log.tears = True
    with pytest.raises(LogUnavailable):
        await publisher.append(*(a_run("a", n, n != 1) for n in range(4)))
    publisher.log.tears = False

    after = await read_again(publisher)

    assert value(after, PASS_POW, 3) == pytest.approx(1 / 4)
    assert value(after, PASS_POW, 1) == pytest.approx(3 / 4)


async def test_a_run_without_a_verdict_is_counted_and_enters_no_gauge() -> None:
    publisher = Publisher()

    await publisher.append(a_run("a", 1, None))

    assert gauges(publisher) == {}
    assert publisher.value("task_runs_dropped_total", reason="no_success") == 1


async def test_agents_above_the_cap_share_a_name_and_keep_their_tasks_apart() -> None:
    publisher = Publisher()
    await publisher.append(*(a_run("same", n, agent=f"a{n}") for n in range(66)))

    assert value(publisher, PASS_AT, 1, "a63") == 1
    assert value(publisher, PASS_AT, 1, "a64") is None
    assert publisher.value(LEFT_OUT, agent="_other", k="3") == 2
    assert publisher.value("label_overflow_total", label="agent") == 2
    assert gauges(await read_again(publisher)) == gauges(publisher)


@pytest.mark.parametrize("stored", [False, True])
async def test_an_agent_that_loses_its_slot_loses_its_tasks_and_the_new_ones_survive_a_crash(
    *, stored: bool
) -> None:
    """The slots are stored with its runs: those of ten seconds ago would say that it has none."""
    publisher = Publisher()
    await publisher.append(*(a_run("same", n, agent=f"a{n}") for n in range(64)))
    if stored:
        await publisher.exporter.finish()

    await publisher.close_traces(*(closed_trace("new", n, service="bot") for n in range(3)))
    await publisher.append(a_run("same", 64, agent="new"))

    shown = {key[1][1] for key in gauges(publisher)}
    assert len(shown) == 64
    assert "new" in shown
    after = await read_again(publisher)
    assert gauges(after) == gauges(publisher)
    assert value(after, PASS_AT, 1, "new") == 1


RUNS = st.lists(
    st.builds(
        a_run,
        st.sampled_from(["a", "b"]),
        st.integers(0, 6),
        st.booleans(),
        session_id=st.sampled_from(["s1", "s2", "s3", "s4", "s5"]),
    ),
    max_size=25,
)


@given(runs=RUNS, seed=st.integers(0, 99), window=st.integers(1, 4), cut=st.integers(0, 25))
def test_neither_order_nor_repeats_nor_a_restart_matter(
    runs: list[RunRecord], seed: int, window: int, cut: int
) -> None:
    straight, other = TaskRuns(window=window), TaskRuns(window=window)
    for each in runs:
        straight.take(each, "bot", "planner")
    shuffled = [*runs, *runs[:5]]
    random.Random(seed).shuffle(shuffled)
    for each in shuffled[:cut]:
        other.take(each, "bot", "planner")
    restarted = TaskRuns(window=window)
    assert give_back(restarted.table, other.table.pending()) == []
    for each in shuffled[cut:]:
        restarted.take(each, "bot", "planner")

    assert dict(restarted.passing()) == dict(straight.passing())


def test_a_smaller_window_after_a_restart_cuts() -> None:
    wide = TaskRuns(window=20)
    for at in range(10):
        wide.take(a_run("a", at, at >= 7), "bot", "planner")
    narrow = TaskRuns(window=3)

    assert give_back(narrow.table, wide.table.pending()) == []

    assert narrow.newest() == {("bot", "planner"): 9.0}
    ((_, passing),) = narrow.passing()
    assert [each.pass_pow_k for each in passing] == [1.0, 1.0, None]


def test_too_many_tasks_cost_the_agent_that_makes_them_up() -> None:
    runs = TaskRuns(window=5, most=3)
    lost: list[tuple[str, str]] = []
    for at in range(6):
        lost += runs.take(a_run(f"made-up-{at}", at, agent="noisy"), "bot", "noisy")
    lost += runs.take(a_run("a", 0), "bot", "planner")

    assert {agent: each[0].tasks for agent, each in runs.passing()} == {
        ("bot", "noisy"): 2,
        ("bot", "planner"): 1,
    }
    assert lost == [("bot", "noisy")] * 4
    assert sum(each.value is None for each in runs.table.pending()) == 4


@pytest.mark.parametrize(
    ("name", "said"), [("nope", "there is no evaluator `nope`"), ("coherence", "scores traces")]
)
def test_an_evaluator_of_tasks_that_is_not_there_is_a_configuration_error(
    name: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^tasks\.evaluator: .*{said}"):
        plan_from(Config.model_validate({"tasks": {"evaluator": name}}))


def test_an_own_judge_of_sessions_may_decide() -> None:
    plan_from(
        Config.model_validate(
            {
                "tasks": {"evaluator": "done"},
                "judges": {"done": {"rubric": "Is it done?", "scope": "session"}},
            }
        )
    )


# --- feedback decides ------------------------------------------------------------------------------------------------


def passed(runs: TaskRuns) -> tuple[int, float | None]:
    """How many tasks have a decided run, and pass@1."""
    found = [each[0] for _, each in runs.passing()]
    return sum(each.tasks for each in found), found[0].pass_at_k if found else None


def verdicts(said: dict[tuple[str, str], bool]) -> Said:
    return lambda service, session: said.get((service, session))


def test_feedback_decides_a_run_before_the_evaluator_does_but_not_what_its_spans_state() -> None:
    said: dict[tuple[str, str], bool] = {("bot", "a-1"): False, ("bot", "a-2"): False}
    runs = TaskRuns(window=5, said=verdicts(said))

    list(runs.take(a_run("a", 1, True), "bot", "planner"))
    assert passed(runs) == (1, 0.0)

    list(runs.take(a_run("a", 2, True, stated=True), "bot", "planner"))
    assert passed(runs) == (1, 0.5)


def test_feedback_that_comes_later_decides_a_run_over_restarts() -> None:
    said: dict[tuple[str, str], bool] = {}
    runs = TaskRuns(window=5, said=verdicts(said))
    undecided = a_run("a", 1, None)
    assert runs.keeps(undecided)
    assert not TaskRuns(window=5).keeps(undecided)
    list(runs.take(undecided, "bot", "planner"))
    list(runs.take(a_run("a", 2, False, stated=True), "bot", "planner"))
    assert passed(runs) == (1, 0.0)

    restarted = TaskRuns(window=5, said=verdicts(said))
    give_back(restarted.table, runs.table.pending())
    said.update({("bot", "a-1"): True, ("bot", "a-2"): True})
    restarted.decide("bot", "a-1")
    restarted.decide("bot", "a-2")
    restarted.decide("bot", "unknown")

    assert passed(restarted) == (1, 0.5)
    written, again = runs.table.pending(), restarted.table.pending()
    assert [each.key for each in again] == [each.key for each in written], "it is written again"
