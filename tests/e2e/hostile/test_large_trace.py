"""A trace that was acknowledged is scored, though its record, raw and normalised, would be above what the log takes."""

import json
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.agents import request
from tests.support.asking import span, trace_id
from tests.support.hostile import post
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SIZE = 55_000
"""Characters of one call's arguments: less than a value is cut to when it is read."""


def calling(session: str, number: int) -> Span:
    """A tool call below a root, with large arguments of its own."""
    made = span(session, "", child="note")
    made.span_id = number.to_bytes(8, "big")
    arguments = json.dumps({"text": f"{number} " + "x" * SIZE})
    made.attributes.add(key="gen_ai.tool.call.arguments").value.string_value = arguments
    return made


def send(service: Service, session: str, calls: int) -> None:
    for first in range(0, calls, 50):
        made = [calling(session, 1 + n) for n in range(first, min(first + 50, calls))]
        assert post(service.http, request("desk-bot", made))[0] == 200
    assert post(service.http, request("desk-bot", [span(session, "Keep them all.")]))[0] == 200


def scored(service: Service, session: str) -> bool:
    found = [each for each in service.signals() if each["trace_id"] == trace_id(session)]
    return any(each["outcome"] == "scored" for each in found)


@pytest.mark.parametrize(
    ("calls", "log", "keeps_spans"),
    [(200, "4GiB", True), (150, "32MiB", False)],
    ids=["above every log's limit", "above the limit of a small log"],
)
def test_a_large_trace_is_scored_and_says_that_it_was_cut(
    tmp_path: Path, calls: int, log: str, *, keeps_spans: bool
) -> None:
    settings = ("windows.trace.root_grace=1s", "embedder.kind=none", f"log.disk.max_size={log}")
    with Service(tmp_path / "data", *settings) as service:
        send(service, "large", calls)
        service.wait_for("it is scored", lambda: scored(service, "large"), timeout=90)

        shown = service.shown(trace_id("large"), spans=calls + 1)
        metrics = service.metrics()

    assert shown["trace"]["truncated"]
    assert "truncated" in shown["trace"]["gaps"]
    assert len(shown["trace"]["tool_calls"]) == calls
    assert (len(shown["spans"]) > 0) is keeps_spans
    assert metrics.get('spanwise_poison_records_total{topic="spans"}', 0) == 0
    assert metrics['spanwise_trace_gaps_total{gap="truncated",service="desk-bot"}'] == 1
