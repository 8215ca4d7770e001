"""Counters, windows and headline gauges: what counts once, what is left out, what survives a restart."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from collector.base.errors import LogUnavailable
from collector.config.tree import AgentWindow
from collector.export.exporter import GROUP
from collector.log.port import SIGNALS, TRACES, WINDOWS, Commit, New
from collector.records.codec import encode
from collector.records.signal import Signal
from collector.records.signal_batch import batch_records, made
from collector.records.traces import TraceRecord
from evaluators.model import Tokens
from tests.support.clocks import eventually
from tests.support.publisher import Publisher, closed_trace
from tests.support.signals import BASE, covered, failed, hex_of, new, signal, skipped
from tests.support.state_tables import state_key


def session(name: str, score: float | None, **fields: Any) -> Signal:
    return signal(name, None, score=score, **fields)


Exported = tuple[Sequence[Sequence[Signal]], Mapping[str, float | None]]
EXPORTED: Mapping[str, Exported] = {
    "each subject counts once by its outcome": (
        [
            [
                signal(trace="a", score=0.9),
                signal(trace="b", score=0.2),
                failed(trace="c"),
                signal(trace="d", score=None, outcome="not_applicable", success=None, assumed=1.0),
                skipped(trace="e"),
                signal(
                    trace="f", score=None, outcome="measured", success=None, evaluator="latency"
                ),
            ]
        ],
        {
            **{f"evaluations_total outcome={each}": 1 for each in ("pass", "fail", "error")},
            "evaluations_total outcome=not_applicable": 1,
            "evaluations_skipped_total reason=budget": 1,
            "evaluations_total evaluator=latency": None,
            "score_ratio_count": 2,
        },
    ),
    "a repeat counts nowhere": (
        [[signal(), signal()], [signal()]],
        {"evaluations_total": 1, "revisions_total": None},
    ),
    "a stand-in counts nowhere and enters no window": (
        [[signal(final=False)]],
        {"evaluations_total": None, "window_mean_ratio": None},
    ),
    "an open session counts nowhere but stands in the headline": (
        [[session("s-1", 0.4, final=False), session("s-2", 0.8)]],
        {
            "evaluations_total": 1,
            "agent_reliability_ratio service=support-bot agent=planner agent_version=1.4.2": 0.6,
            "window_samples": 2,
        },
    ),
    "a session counts with its latest score": (
        [
            [
                session("s-1", 0.9, final=False, revision=7, at=BASE + 5),
                session("s-1", 0.1, final=False, revision=3, at=BASE),
            ]
        ],
        {"agent_reliability_ratio": 0.9},
    ),
    "the newest sessions are the window": (
        [[session(f"s-{n}", n / 200, at=BASE + n) for n in range(201)]],
        {"agent_reliability_ratio": 0.5025, "window_samples": 200},
    ),
    "sessions of low coverage are left out": (
        [[session(f"s-{n}", n / 10, coverage=covered(10, n)) for n in (4, 5)]],
        {"agent_reliability_ratio": 0.5},
    ),
    "a session that is seen too little from the start has no series": (
        [[session("s-1", None, coverage=covered(3, 0), outcome="skipped")]],
        dict.fromkeys(
            ("agent_reliability_ratio", "window_mean_ratio", "last_score_timestamp_seconds")
        ),
    ),
    "the cap on agents folds and counts": (
        [[signal(trace=f"t{n}", agent=f"a{n}") for n in range(66)]],
        {
            "evaluations_total agent=a63": 1,
            "evaluations_total agent=a64": None,
            "evaluations_total service=_other agent=_other": 2,
            "label_overflow_total label=agent": 2,
        },
    ),
    "the cap on evaluators folds and counts": (
        [[signal(trace=f"t{n}", evaluator=f"e{n}") for n in range(65)]],
        {"evaluations_total evaluator=_other": 1, "label_overflow_total label=evaluator": 1},
    ),
}
"""Signals, in the order in which they are published, and what is exported of them then."""


@pytest.mark.parametrize("exported", EXPORTED.values(), ids=EXPORTED)
async def test_of_signals_is_exported(exported: Exported) -> None:
    batches, wanted = exported
    publisher = Publisher()

    for batch in batches:
        await publisher.publish(*batch)

    for series, value in wanted.items():
        family, *labels = series.split()
        found = publisher.value(family, **dict(each.split("=", 1) for each in labels))
        assert found == (value if value is None else pytest.approx(value)), series


async def test_a_later_outcome_counts_as_a_revision_and_a_repeat_of_a_restart_nowhere() -> None:
    publisher = Publisher()
    await publisher.publish(signal())

    await publisher.publish(signal(), first=False)
    assert publisher.value("revisions_total") is None
    await publisher.publish(signal(revision=1, score=0.1), first=False)

    assert publisher.value("evaluations_total") == 1
    assert publisher.value("evaluations_total", outcome="fail") is None
    assert publisher.value("revisions_total") == 1


@pytest.mark.parametrize("reads", [True, False])
async def test_when_no_session_is_left_the_series_is_removed(*, reads: bool) -> None:
    """Whether the reader goes on or not: a log that cannot be read must not freeze the number."""
    publisher = Publisher()
    await publisher.publish(session("s-1", 0.8))
    headline = ("agent_reliability_ratio", "window_mean_ratio", "window_lower_bound_ratio")
    assert None not in [publisher.value(each) for each in headline]

    publisher.log.clock.now += 86_401
    if reads:
        await publisher.step()

    assert [publisher.value(each) for each in headline] == [None, None, None]


async def test_the_eight_newest_versions_of_an_agent_have_a_series() -> None:
    publisher = Publisher()

    await publisher.publish(
        *(session(f"s-{n}", 0.5, agent_version=f"1.{n}", at=BASE + n) for n in range(10))
    )

    assert publisher.value("agent_reliability_ratio", agent_version="1.1") is None
    shown = [key for key in publisher.gauges() if key[0] == "spanwise_agent_reliability_ratio"]
    assert len(shown) == 8


async def test_windows_are_stored_every_ten_seconds_with_the_commit() -> None:
    publisher = Publisher()
    await publisher.publish(session("s-1", 0.8))
    commit = publisher.log.committed("sink.prometheus", "signals", 0)
    assert (commit.offset, commit.metadata) == (0, 1)

    publisher.log.clock.now += 10
    await publisher.step()

    commit = publisher.log.committed("sink.prometheus", "signals", 0)
    assert (commit.offset, commit.metadata) == (1, 1)
    keys = [r.key for r in publisher.log.history(WINDOWS)]
    labels = ("support-bot", "planner", "agent_reliability", "session")
    assert keys == [
        state_key("slots", ""),
        state_key("versions", labels[:2]),
        state_key("window", labels),
        state_key("costs", labels[:2]),
        state_key("drift", labels),
    ]


async def test_a_process_that_stops_before_it_has_read_again_commits_nothing_it_has_not_read() -> (
    None
):
    """What the process before it counted stands in the commit's metadata; the windows lack it still."""
    publisher = Publisher()
    await publisher.publish(session("s-1", 0.8))
    restarted = publisher.successor()
    await restarted.exporter.restore()
    restarted.exporter.join()
    await restarted.exporter.step()  # the partition is assigned, no record has come

    restarted.log.clock.now += 10
    await restarted.exporter.finish()

    assert restarted.log.committed("sink.prometheus", "signals", 0).offset == 0


async def test_a_record_that_is_no_signal_is_counted_and_passed_over() -> None:
    publisher = Publisher()
    await publisher.log.write([New(topic="signals", key=b"x", value=b"{}")])

    await publisher.publish(signal(time="yesterday"), signal(trace="fine"))

    assert publisher.value("poison_records_total", topic="signals") == 2
    assert publisher.value("evaluations_total") == 1


async def test_a_subject_whose_time_cannot_be_read_takes_no_other_of_its_record_with_it() -> None:
    publisher = Publisher()
    odd = signal("s-1", "t-1", time="yesterday")
    found = [made(each, first=True) for each in (odd, session("s-1", 0.9))]

    await publisher.log.write([*batch_records(found)])
    await publisher.step()

    assert publisher.value("poison_records_total", topic="signals") == 1
    assert publisher.value("window_samples", evaluator="agent_reliability") == 1


async def test_a_fail_carries_an_exemplar_in_openmetrics() -> None:
    publisher = Publisher()
    await publisher.publish(signal(trace="bad", score=0.1), session("s-1", 0.1))

    body, content_type = publisher.telemetry.exposition(
        "application/openmetrics-text;version=1.0.0"
    )

    lines = [line for line in body.decode().splitlines() if " # {" in line]
    assert content_type.startswith("application/openmetrics-text")
    assert any(line.startswith("spanwise_evaluations_total{") for line in lines)
    assert any(line.startswith("spanwise_score_ratio_bucket{") for line in lines)
    assert all(f'trace_id="{hex_of("bad")}"' in line for line in lines)


async def test_traces_feed_duration_cost_and_tokens_once() -> None:
    publisher = Publisher()
    trace = closed_trace("planner", 1, tokens=Tokens(input=100, output=7), cost_usd=0.25)

    await publisher.append(
        *(TraceRecord(trace=trace, spans=(b"raw",), revision=n, seen=BASE) for n in (0, 0, 1))
    )
    publisher.log.append(TRACES, b"\xff")
    await publisher.read_traces()

    assert publisher.value("poison_records_total", topic="traces") == 1
    assert publisher.value("trace_duration_seconds_sum") == 1
    assert publisher.value("trace_duration_seconds_count") == 1
    assert publisher.value("trace_cost_usd_total") == 0.25
    tokens = [
        publisher.value("trace_tokens_total", type=each) for each in ("input", "output", "cached")
    ]
    assert tokens == [100, 7, None]


async def test_all_readers_run_until_they_are_stopped_and_commit() -> None:
    publisher, stopping = Publisher(), asyncio.Event()
    await publisher.log.write([new(signal(trace="a"))])
    publisher.log.append(TRACES, b"\xff")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(publisher.exporter.run(stopping))
        await eventually(lambda: publisher.value("evaluations_total") == 1)
        await eventually(lambda: publisher.value("poison_records_total", topic="traces") == 2)
        await eventually(lambda: any(each.topic == TRACES for each in publisher.log.commits))
        stopping.set()


async def test_the_alarm_rises_on_a_regression_and_ends_when_the_mean_is_back() -> None:
    publisher = Publisher(limits=AgentWindow(sessions=20))
    good = [signal(f"g{n}", f"g{n}", score=0.97, at=BASE + n) for n in range(40)]
    bad = [signal(f"b{n}", f"b{n}", score=0.4, at=BASE + 100 + n) for n in range(20)]
    better = [signal(f"c{n}", f"c{n}", score=0.97, at=BASE + 200 + n) for n in range(20)]

    await publisher.publish(*good)
    assert publisher.value("objective_missed_detected") == 0
    await publisher.publish(*bad)
    assert publisher.value("objective_missed_detected") == 1
    restarted = publisher.successor()
    await restarted.step()
    assert restarted.value("objective_missed_detected") == 1
    await restarted.publish(*better)
    assert restarted.value("objective_missed_detected") == 0


async def test_windows_stored_without_their_commit_are_not_fed_again() -> None:
    """Kafka writes the records, then the process dies before the commit: the detector must not read twice."""
    publisher = Publisher()
    await publisher.publish(*(signal(f"s{n}", f"t{n}", score=0.5) for n in range(5)))
    (before,) = [encode(target.record()) for target in publisher.exporter._targets]
    publisher.log.tears = True
    publisher.log.clock.now += 10
    with pytest.raises(LogUnavailable):
        await publisher.step()
    publisher.log.tears = False
    assert len(publisher.log.history(WINDOWS)) > 1

    after = publisher.successor()
    await after.step()

    assert [encode(target.record()) for target in after.exporter._targets] == [before]
    assert after.value("evaluations_total") is None


async def test_an_evaluator_without_objective_is_held_to_none() -> None:
    publisher = Publisher(objectives=lambda _: None)

    for number in range(400):
        await publisher.publish(signal(trace=f"t-{number}", score=0.1))

    assert publisher.value("window_mean_ratio") == pytest.approx(0.1)
    assert publisher.value("objective_missed_detected") is None
    assert publisher.value("slo_objective_ratio") is None


async def test_no_gauge_is_shown_before_what_was_known_is_read_back() -> None:
    publisher = Publisher()
    await publisher.publish(session("s-1", 0.5), signal(trace="a"))
    successor = publisher.successor()

    await successor.exporter.restore()

    assert successor.gauges() == {}
    await successor.step()
    assert successor.gauges() == publisher.gauges() != {}
    assert successor.value("evaluations_total") is None, "what was counted is not counted again"


async def test_signals_are_lost_only_when_they_were_never_counted() -> None:
    """What was dropped between the counters and their commit is not missing anywhere."""
    publisher = Publisher()
    await publisher.publish(*(signal(f"s-{n}", f"t-{n}") for n in range(4)))
    commit = Commit(group=GROUP, topic=SIGNALS, partition=0, offset=0, metadata=4)
    await publisher.log.write([new(signal(f"s-{n}", f"t-{n}")) for n in range(4, 9)], [commit])
    publisher.log.expire_below(6, SIGNALS)
    successor = publisher.successor()
    await successor.step()

    assert successor.value("signals_total", sink="prometheus", result="lost") == 2
    assert successor.value("evaluations_total") == 3
