"""Recordings of real agents through the real process give the signals that they give offline, and replayed.

`SPANWISE_CAPTURES` and `SPANWISE_LOG_CAPTURES` name other folders of recordings.
"""

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from collector.otlp.signal import LOGS_SERVICE, TRACE_SERVICE
from tests.support.command import evaluated, settings, spanwise
from tests.support.recorded_signals import Signal, key, newest_final
from tests.support.recordings import recordings, requests, trace_ids
from tests.support.service import Service

DATA = Path(__file__).parents[1] / "data"
SPANS = Path(os.environ.get("SPANWISE_CAPTURES") or DATA / "captures")
LOGS = Path(os.environ.get("SPANWISE_LOG_CAPTURES") or DATA / "captures_logs")
PATIENT = (
    "windows.trace.root_grace=40s",
    "windows.trace.local_root_grace=40s",
    "windows.trace.idle=50s",
    "windows.session.idle=60s",
)
"""Longer than all of it takes to arrive, kills included, also on a busy machine: nothing closes before it is there."""
KILLS = 3
LARGE = [("grpc.max_send_message_length", 64 << 20)]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
Sent = tuple[str, bytes]


def every_request() -> list[Sent]:
    """Of log records and of spans beside them, each with the gRPC method that takes it."""
    sent: list[Sent] = []
    for path in sorted(LOGS.rglob("*.otlp")):
        if not path.name.endswith(".metrics.otlp"):
            service = LOGS_SERVICE if path.name.endswith(".logs.otlp") else TRACE_SERVICE
            sent += [(service.method, each) for each in requests(path)]
    return sent


def send(service: Service, every: Sequence[Sent]) -> None:
    """Each is accepted whole."""
    with grpc.insecure_channel(service.grpc, options=LARGE) as channel:
        for method, request in every:
            answer = channel.unary_unary(method, bytes, bytes)(request, timeout=60)
            assert not answer, f"{method}: {answer!r}"  # an empty message: no partial success


def closed_sessions(signals: Sequence[Signal]) -> set[tuple[str, str]]:
    """Sessions are ranked when their other signals are there."""
    return {key(each) for each in signals if each["evaluator"] == "work_baseline" and each["final"]}


def differing(live: list[Signal], alone: list[Signal], *names: str) -> dict[Any, Any]:
    """What the final signals say differently. A session's rank is among those that closed before it: not offline's."""
    left, right = newest_final(live), newest_final(alone)
    assert left.keys() == right.keys()
    return {
        at: [(name, each[name], right[at][name]) for name in names if each[name] != right[at][name]]
        for at, each in left.items()
        if any(each[name] != right[at][name] for name in names)
    }


def test_spans_give_the_signals_and_the_traces_that_they_give_offline(tmp_path: Path) -> None:
    windows = (
        *("windows.trace.root_grace=10s", "windows.trace.local_root_grace=10s"),
        *("windows.trace.idle=12s", "windows.session.idle=20s"),
    )
    every = [each for path in recordings(SPANS) for each in requests(path)]
    traces = set[str]().union(*map(trace_ids, every))
    with Service(tmp_path / "data", *windows) as service:
        send(service, [(TRACE_SERVICE.method, each) for each in every])

        def in_closed_sessions() -> set[str]:
            signals = service.signals()
            closed = closed_sessions(signals)
            return {s["trace_id"] for s in signals if s["scope"] == "trace" and key(s) in closed}

        service.wait_for("every session closed", lambda: traces <= in_closed_sessions(), 240)
        signals, metrics = service.signals(), service.metrics()
        shown = {each: service.shown(each)["trace"] for each in traces}

    says = ("id", "score", "outcome", "explanation")
    assert differing(signals, evaluated(str(SPANS)), *says) == {}
    ended = spanwise("inspect", str(SPANS), "--format", "jsonl")
    printed = map(json.loads, ended.out.rstrip("\n").split("\n"))
    assert {trace["trace_id"]: trace for trace in printed} == shown
    # Else the comparison with the offline run would say nothing.
    bad = ("late_spans", "spans_ignored", "poison_records", "revisions", "log_dropped_records")
    prefixes = tuple(f"spanwise_{each}_total" for each in bad)
    assert {name: v for name, v in metrics.items() if name.startswith(prefixes) and v} == {}


def test_log_records_in_any_order_doubled_and_killed_give_the_signals_of_offline_and_of_a_replay(
    tmp_path: Path,
) -> None:
    offline = evaluated(str(LOGS))
    sessions = {key(each) for each in offline}
    every = every_request() * 2
    random.Random(15).shuffle(every)
    part = len(every) // (KILLS + 1) + 1
    with Service(tmp_path / "data", *PATIENT) as service:
        for first in range(0, len(every), part):
            if first:
                service.kill()
                service.start()
            send(service, every[first : first + part])
        service.wait_for(
            "every session closed", lambda: closed_sessions(service.signals()) >= sessions, 400
        )
        live = service.signals()
    again = spanwise("replay", *settings(f"data_dir={service.data}", *PATIENT))

    says = ("id", "score", "outcome", "reason", "explanation", "session_source")
    ranked = {at for at in newest_final(live) if at[3] == "work_baseline"}
    assert differing(live, offline, *says).keys() <= ranked
    assert again.code == 0, again.err
    assert final_of_traces(
        [json.loads(line) for line in again.out.splitlines()]
    ) == final_of_traces(live)


def final_of_traces(signals: list[Signal]) -> dict[tuple[str, ...], Signal]:
    """`revision` apart, which counts spans that came late."""
    found = newest_final(signals).items()
    return {at: {**each, "revision": None} for at, each in found if each["scope"] == "trace"}
