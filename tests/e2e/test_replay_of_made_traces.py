"""Traces scored again from the log: the ids and scores that were given live, `revision` apart."""

import json
import random
from pathlib import Path
from typing import Any

import grpc
import pytest

from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE
from tests.support import sender
from tests.support.asking import asked
from tests.support.command import settings, spanwise
from tests.support.recordings import requests
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

FOLDER = Path(__file__).parents[1] / "data" / "captures_logs"
RECORDINGS = (
    "claude_code/subagent",
    "claude_code_traces/session",
    "codex/subagent",
    "codex_tui/session",
)
"""Turns of records alone, of records and spans, of two conversations, and with titles beside them."""
SETTINGS = (
    "windows.trace.root_grace=6s",
    "windows.trace.idle=8s",
    "windows.session.idle=10s",
    "embedder.kind=none",
)


def send(target: str) -> None:
    """Every request twice, in an order that is none."""
    sent: list[tuple[str, bytes]] = []
    for name in RECORDINGS:
        for suffix, service in ((".logs.otlp", LOGS_SERVICE), (".otlp", TRACE_SERVICE)):
            path = FOLDER / (name + suffix)
            sent += [(service.method, each) for each in requests(path)] if path.exists() else []
    every = sent * 2
    random.Random(4).shuffle(every)
    with grpc.insecure_channel(target) as channel:
        for method, request in every:
            export = channel.unary_unary(
                method, request_serializer=bytes, response_deserializer=bytes
            )
            assert not export(request, timeout=30)


def without_revision(lines: list[str]) -> dict[str, dict[str, Any]]:
    """Final signals of traces by id."""
    found = [json.loads(line) for line in lines]
    kept = [each for each in found if each["final"] and each["scope"] == "trace"]
    return {each["id"]: {k: v for k, v in each.items() if k != "revision"} for each in kept}


def replayed(data: Path, *given: str) -> dict[str, dict[str, Any]]:
    again = spanwise("replay", *settings(f"data_dir={data}", *given))
    assert again.code == 0, again.err
    return without_revision(again.out.splitlines())


def test_traces_of_spans_are_scored_again_as_they_were(tmp_path: Path) -> None:
    quick = ("windows.trace.root_grace=200ms", "embedder.kind=none")
    with Service(tmp_path / "data", *quick) as service:
        sender.send(service.grpc, *(asked(f"s{n % 3}", "Where is it?", number=n) for n in range(9)))
        service.wait_for("all are scored", lambda: len(service.scored_traces()) == 9)
        live = without_revision(service.signal_lines())

    assert replayed(tmp_path / "data", *quick) == live


def test_made_traces_are_scored_again_as_they_were(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SETTINGS) as service:
        send(service.grpc)

        def closed() -> bool:
            signals = service.signals()
            sessions = {(each["service"], each["session_id"]) for each in signals}
            ended = {
                (each["service"], each["session_id"])
                for each in signals
                if each["final"] and each["evaluator"] == "agent_reliability"
            }
            return len(sessions) >= len(RECORDINGS) and ended == sessions

        service.wait_for("every session closed", closed, timeout=60)
        live = without_revision(service.signal_lines())

    turns = {each["trace_id"] for each in live.values()}
    assert len(turns) >= 1 + 3 + 1 + 3, "a turn for each prompt"
    assert replayed(tmp_path / "data", *SETTINGS) == live
