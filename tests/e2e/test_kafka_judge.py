"""Judging in processes of its own: verdicts stand beside their traces, and another judge goes on where one died."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from collector.records.trace_views import RawTrace, decode_judged_trace, decode_raw_trace
from collector.records.traces import VerdictRecord
from tests.support import agents
from tests.support.fleet import Fleet, differing, latest, send
from tests.support.kafka.topics import read_topic
from tests.support.openai_server import OpenAiServer
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]

COUNT = 12
SETTINGS = (
    "judge.price.input=1",
    "judge.price.output=1",
    "judge.budget.calls_per_minute=1000",
    "judge.concurrency=2",
)


def judged(publisher: Service) -> set[str]:
    """The traces whose newest signals hold a judge's score."""
    return {
        trace
        for (_, scope, trace, _, method), each in latest(publisher.signals()).items()
        if scope == "trace" and method == "llm_judge" and each["outcome"] == "scored"
    }


async def places(bootstrap: str, topic: str) -> tuple[dict[str, int], Counter[tuple[str, int]]]:
    """By trace id: the partition of its trace, and how many verdicts stand where."""
    traces: dict[str, int] = {}
    verdicts: Counter[tuple[str, int]] = Counter()
    for record in await read_topic(bootstrap, topic):
        found = decode_raw_trace(record.value or b"")
        if isinstance(found, RawTrace):
            traces[decode_judged_trace(found.trace).trace_id] = record.partition
        elif isinstance(found, VerdictRecord) and found.scope == "trace":
            verdicts[found.subject, record.partition] += 1
    return traces, verdicts


@pytest.mark.timeout(400)
def test_a_verdict_stands_in_its_traces_partition_whichever_judge_gave_it(
    tmp_path: Path, kafka: str
) -> None:
    turns = [agents.Turn(service="bot", session=f"s-{n}", number=n) for n in range(COUNT)]
    sent = list(agents.requests(turns))
    expected = {agents.trace_id(turn).hex() for turn in turns}
    with (
        OpenAiServer("slow", delay=0.3) as server,
        Fleet(tmp_path, kafka, partitions=4) as fleet,
    ):
        settings = (*SETTINGS, *server.settings)
        receiver = fleet.add("receiver", "receive", settings=settings)
        fleet.add("worker", "assemble", "score", settings=settings)
        publisher = fleet.add("publisher", "publish", settings=settings)
        judge = fleet.add("judge", "judge", settings=settings)

        send(sent, lambda: receiver.grpc, during=lambda: None, pause=0.0)
        judge.wait_for("some calls", lambda: server.answered >= COUNT // 2)
        judge.kill()
        fleet.add("another", "judge", settings=settings)
        publisher.wait_for("verdicts", lambda: judged(publisher) >= expected, 120)

        traces, verdicts = asyncio.run(places(kafka, f"{fleet.prefix}traces"))
        assert traces.keys() == expected
        assert len(set(traces.values())) > 1
        assert verdicts == Counter(dict.fromkeys(traces.items(), 1))
        assert differing(publisher.signal_lines()) == 0
