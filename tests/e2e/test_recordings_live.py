"""Recordings of real agent libraries through the real process, beside the same recordings offline.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import grpc
import pytest
import yaml

from tests.support.command import evaluated, spanwise
from tests.support.recorded_signals import Signal, key, newest_final
from tests.support.recordings import recordings, requests, trace_ids
from tests.support.sender import EXPORT
from tests.support.service import Service

FOLDER = Path(
    os.environ.get("SPANWISE_CAPTURES") or Path(__file__).parents[1] / "data" / "captures"
)
SETTINGS = (
    "windows.trace.root_grace=10s",
    "windows.trace.local_root_grace=10s",
    "windows.trace.idle=12s",
    "windows.session.idle=20s",
)
"""Longer than any pause between two requests of one trace, also on a machine that is busy with something else."""
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What the running service made of every recording."""

    sent: int
    refused: list[str]
    traces: frozenset[str]
    signals: list[Signal]
    metrics: Mapping[str, float]
    shown: Mapping[str, Any]
    mapped: str
    """Files that the main process has in its memory."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    with Service(tmp_path_factory.mktemp("walk") / "data", *SETTINGS, measured=True) as service:
        refused = list(send_all(service.grpc))
        every = [each for path in recordings(FOLDER) for each in requests(path)]
        traces = frozenset[str]().union(*map(trace_ids, every))
        service.wait_for(
            "every session closed", lambda: traces <= in_closed_sessions(service), timeout=240
        )
        return Walk(
            sent=len(every),
            refused=refused,
            traces=traces,
            signals=service.signals(),
            metrics=service.metrics(),
            shown={each: service.shown(each)["trace"] for each in traces},
            mapped=Path(f"/proc/{service.pid}/maps").read_text(),
        )


@pytest.fixture(scope="module")
def offline() -> list[Signal]:
    return evaluated(str(FOLDER))


def send_all(target: str) -> Iterator[str]:
    """Every request of every recording, once; what was not accepted whole."""
    with grpc.insecure_channel(
        target, options=[("grpc.max_send_message_length", 64 << 20)]
    ) as channel:
        export = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        for path in recordings(FOLDER):
            for request in requests(path):
                try:
                    answer = export(request, timeout=60)
                except grpc.RpcError as error:
                    yield f"{path}: {error}"
                else:
                    if answer:  # an empty message: no partial success
                        yield f"{path}: {answer!r}"


def in_closed_sessions(service: Service) -> frozenset[str]:
    """Traces of which every trace signal and the final signals of their session have arrived."""
    signals = service.signals()
    last = "work_baseline"  # sessions are ranked when their other signals are there
    closed = {key(each)[:2] for each in signals if each["evaluator"] == last and each["final"]}
    return frozenset(
        each["trace_id"] for each in signals if each["scope"] == "trace" and key(each)[:2] in closed
    )


def test_every_request_is_accepted_whole(walk: Walk) -> None:
    assert walk.sent > 100
    assert walk.refused == []


def test_every_trace_ends_with_signals(walk: Walk) -> None:
    with_signals = {each["trace_id"] for each in walk.signals if each["scope"] == "trace"}

    assert walk.traces - with_signals == set()


def test_the_main_process_has_scored_without_the_libraries_of_workers(walk: Walk) -> None:
    assert [each for each in ("numpy", "tokenizers") if f"/{each}" in walk.mapped] == []


def test_every_due_evaluator_has_one_final_outcome_per_trace(walk: Walk) -> None:
    seen: dict[str, list[str]] = defaultdict(list)
    for each in walk.signals:
        if each["scope"] == "trace" and each["final"]:
            seen[each["trace_id"]].append(each["evaluator"])

    due = {tuple(sorted(each)) for each in seen.values()}

    assert len(due) == 1, "the same evaluators for every trace, each once"


def test_no_score_and_error_together(walk: Walk) -> None:
    for each in walk.signals:
        assert (each["score"] is not None) == (each["outcome"] == "scored")
        assert not (each["score"] is not None and each["error"] is not None)


def test_sessions_that_loop_are_less_reliable_than_good_ones(walk: Walk) -> None:
    final = list(newest_final(walk.signals).values())
    reliability = {
        key(each): each["score"] for each in final if each["evaluator"] == "agent_reliability"
    }
    session_of = {each["trace_id"]: key(each) for each in final if each["scope"] == "trace"}
    compared: list[str] = []
    for loop in sorted(FOLDER.glob("*/loop.otlp")):
        good = loop.with_name("session.otlp")
        if not good.exists() or not carries_content(loop) or not carries_content(good):
            continue
        if repeats_itself(good):
            continue
        bad_score, good_score = (
            mean(
                score
                for session in sessions_in(path, session_of)
                if (score := reliability.get(session)) is not None
            )
            for path in (loop, good)
        )
        compared.append(f"{loop.parent.name}: loop {bad_score:.3f}, session {good_score:.3f}")
        assert bad_score < good_score, compared[-1]
    print("\n".join(compared))
    assert len(compared) >= 4


def carries_content(recording: Path) -> bool:
    """Whether questions and answers of every turn are in the recording."""
    flags = ("input_exported", "output_exported")
    return all(turn.get(flag, True) for turn in turns_of(recording) for flag in flags)


def repeats_itself(recording: Path) -> bool:
    """Whether its agent said the same twice: the smolagents one did in its `session` too, though its script is good."""
    said = [turn["output"] for turn in turns_of(recording)]
    return len(set(said)) < len(said)


def turns_of(recording: Path) -> list[dict[str, Any]]:
    """What its expectations say of each turn."""
    expectations = recording.with_name(recording.name.replace(".otlp", ".expect.yaml"))
    return yaml.safe_load(expectations.read_text())["turn_list"]


def sessions_in(recording: Path, session_of: Mapping[str, tuple[str, str]]) -> set[tuple[str, str]]:
    traces = frozenset[str]().union(*map(trace_ids, requests(recording)))
    return {session_of[each] for each in traces}


def test_the_page_shows_a_trace_as_inspect_prints_it(walk: Walk) -> None:
    ended = spanwise("inspect", str(FOLDER), "--format", "jsonl")
    assert ended.code == 0, ended.err
    printed = {
        trace["trace_id"]: trace for trace in map(json.loads, ended.out.rstrip("\n").split("\n"))
    }

    assert printed.keys() == walk.shown.keys()
    for trace_id, trace in printed.items():
        assert walk.shown[trace_id] == trace


def test_offline_gives_the_final_signals_of_the_running_service(
    walk: Walk, offline: list[Signal]
) -> None:
    live, alone = newest_final(walk.signals), newest_final(offline)

    assert live.keys() == alone.keys()
    differing = {
        at: (each["id"], alone[at]["id"], each["score"], alone[at]["score"])
        for at, each in live.items()
        if (each["id"], each["score"], each["outcome"], each["explanation"])
        != (alone[at]["id"], alone[at]["score"], alone[at]["outcome"], alone[at]["explanation"])
    }
    assert differing == {}


def test_nothing_was_late_lost_or_passed_over(walk: Walk) -> None:
    """Else the comparison with the offline run would say nothing."""
    bad = ("late_spans_total", "spans_ignored_total", "poison_records_total", "revisions_total")
    prefixes = tuple(f"spanwise_{each}" for each in (*bad, "log_dropped_records_total"))

    counted = {
        name: value for name, value in walk.metrics.items() if name.startswith(prefixes) and value
    }

    assert counted == {}
