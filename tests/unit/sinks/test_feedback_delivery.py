"""Feedback on its way to the sinks that hand it on: once it is there it is committed, in order, and nothing is lost."""

import asyncio
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from collector.base.errors import Retryable
from collector.base.telemetry import Telemetry
from collector.log.port import FEEDBACK, SIGNALS, Commit, Position
from collector.records.feedback import FeedbackRules
from collector.records.sent_feedback import SentFeedback
from collector.sinks.feedback_delivery import (
    FeedbackDelivery,
    OutgoingFeedback,
    TakesFeedback,
    feedback_group,
)
from collector.sinks.jsonl import JsonlSink
from collector.sinks.port import Refused
from tests.support.clocks import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.sink_contract import published

TRACE = "0af7651916cd43dd8448eb211c80319c"


@dataclass
class ListSink:
    """Keeps what it gets; fails as often as set, and refuses what is said under one name."""

    name: ClassVar[str] = "list"
    failures: int = 0
    got: list[OutgoingFeedback] = field(default_factory=list[OutgoingFeedback])

    async def deliver_feedback(self, feedback: Sequence[OutgoingFeedback]) -> None:
        if self.failures:
            self.failures -= 1
            raise Retryable("set to fail")
        bad = {each.position: "bad" for each in feedback if b'"bad"' in each.json}
        self.got += [each for each in feedback if each.position not in bad]
        if bad:
            # A sink may refuse signals in the same attempt; they are counted where they are delivered.
            raise Refused({**bad, **{Position(SIGNALS, 0, n): "a signal" for n in range(9)}})


def said(log: FaultyLog, *names: str) -> None:
    for name in names:
        item = SentFeedback(name=name, trace_id=TRACE, span_id=TRACE[:16], value=True)
        new = FeedbackRules().feedback(item, now=log.clock()).record
        assert isinstance(new.value, bytes)
        log.append(FEEDBACK, new.value, key=new.key)


async def delivered(log: FaultyLog, sink: TakesFeedback, up_to: int) -> Telemetry:
    telemetry = Telemetry()
    delivery = FeedbackDelivery(log=log, sink=sink, telemetry=telemetry)
    stopping = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(delivery.run(stopping))
        group = feedback_group(sink.name)
        committed = Commit(group=group, topic=FEEDBACK, partition=0, offset=up_to)
        await eventually(lambda: committed in log.commits)
        stopping.set()
    return telemetry


def counted(telemetry: Telemetry, result: str) -> float:
    labels = {"sink": "list", "result": result}
    name = "spanwise_feedback_handed_on_total"
    return telemetry.registry.get_sample_value(name, labels) or 0.0


async def test_what_was_said_goes_on_in_order_with_its_headers() -> None:
    log, sink = FaultyLog(), ListSink(failures=2)
    said(log, "a", "b")
    log.append(FEEDBACK, b"not feedback")
    said(log, "bad", "c")

    telemetry = await delivered(log, sink, 5)

    assert [json.loads(each.json)["name"] for each in sink.got] == ["a", "b", "c"]
    headers = dict(sink.got[0].headers)
    assert headers["ce_type"] == b"spanwise.feedback.v1"
    assert headers["ce_subject"] == f"trace/{TRACE}".encode()
    assert headers["traceparent"] == f"00-{TRACE}-{TRACE[:16]}-01".encode()
    assert headers["ce_id"].decode() == json.loads(sink.got[0].json)["id"]
    assert sink.got[0].key == TRACE.encode()
    assert (counted(telemetry, "acked"), counted(telemetry, "lost")) == (3, 1)
    assert counted(telemetry, "retried") == 8


async def test_lines_of_feedback_stand_among_those_of_signals(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"
    sink = JsonlSink(path, max_size=1 << 20, keep=1)
    handed = [
        OutgoingFeedback(Position(FEEDBACK, 0, n), b"k", b'{"type":"spanwise.feedback.v1"}', ())
        for n in range(50)
    ]

    async with asyncio.TaskGroup() as tasks:
        for number, each in enumerate(handed):
            tasks.create_task(sink.deliver([published(number)]))
            tasks.create_task(sink.deliver_feedback([each]))
    await sink.close(1.0)

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum("evaluator" in each for each in lines) == 50
    assert sum(each.get("type") == "spanwise.feedback.v1" for each in lines) == 50


async def test_a_write_goes_on_alone_where_its_caller_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "signals.jsonl"
    sink = JsonlSink(path, max_size=1 << 20, keep=1)
    syncing, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def slow(_: int) -> None:
        syncing.set()
        assert go_on.wait(20)
        done.append("synced")

    await sink.deliver([published(0)])
    monkeypatch.setattr(os, "fsync", slow)
    stopped = asyncio.create_task(sink.deliver([published(1)]))
    await asyncio.to_thread(syncing.wait, 20)
    stopped.cancel()
    handed = OutgoingFeedback(Position(FEEDBACK, 0, 0), b"k", b"{}", ())
    async with asyncio.TaskGroup() as tasks:
        feedback = tasks.create_task(sink.deliver_feedback([handed]))
        await asyncio.wait([feedback], timeout=0.2)
        assert not feedback.done()
        assert len(path.read_bytes().splitlines()) == 2
        await sink.close(0.1)  # while the disk hangs: it ends all the same
        assert not feedback.done()
        go_on.set()
    await sink.close(1.0)

    assert done == ["synced", "synced"]
    assert path.read_bytes().endswith(b"}\n{}\n")


@pytest.mark.parametrize("name", ["jsonl", "kafka"])
def test_the_sinks_that_hand_it_on(name: str) -> None:
    assert feedback_group(name) == f"sink.{name}.feedback"
    assert isinstance(JsonlSink(Path("x"), 1, 1), TakesFeedback)
