"""Everyday sessions: healthy ones are not red, those in trouble are. The bounds are those of the recordings."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from collector.config.tree import Config
from tests.support.everyday.conversation import Session, long_sessions, sessions
from tests.support.everyday.recorded import RECORDERS, write
from tests.support.recorded_signals import Signal, signals_of

RECOVERED = "recovered: "
"""Kinds of sessions in which a call failed before it succeeded: reliable, but not free of faults."""


@cache
def every(kind: str) -> Mapping[str, Session]:
    if kind == "troubled":
        return sessions("troubles")
    return {**sessions("talks"), **sessions("jobs"), **long_sessions()}


@cache
def signals(kind: str) -> list[Signal]:
    return scored(every(kind))


def scored(chosen: Mapping[str, Session], **options: Any) -> list[Signal]:
    """The signals of these sessions with these options of agent_reliability."""
    settings = Config.model_validate({"workers": 0, "evaluators": {"agent_reliability": options}})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "everyday.otlp"
        write(path, chosen)
        return signals_of(settings, path)


def reliability(kind: str) -> dict[str, float | None]:
    return {
        each["session_id"]: each["score"]
        for each in signals(kind)
        if each["evaluator"] == "agent_reliability"
    }


@pytest.mark.parametrize("kind", ["healthy", "troubled"])
def test_every_session_is_scored(kind: str) -> None:
    scores = reliability(kind)

    assert len(scores) == len(RECORDERS) * len(every(kind))
    assert None not in scores.values()


def test_of_an_evaluators_outcomes_at_most_one_in_a_hundred_fails() -> None:
    judged: defaultdict[str, list[Signal]] = defaultdict(list)
    for each in signals("healthy"):
        if each["success"] is not None and not each["session_id"].startswith(RECOVERED):
            judged[each["evaluator"]].append(each)

    for name, outcomes in judged.items():
        failed = [each["session_id"] for each in outcomes if not each["success"]]
        assert len(failed) <= 0.01 * len(outcomes), (name, failed)


def test_healthy_sessions_are_reliable() -> None:
    scores = reliability("healthy")
    low = {name: score for name, score in scores.items() if score is None or score < 0.8}

    assert len(low) <= 0.05 * len(scores), low


def test_a_recovered_error_is_no_unreliability() -> None:
    scores = {name: s for name, s in reliability("healthy").items() if name.startswith(RECOVERED)}

    assert scores
    assert {name: s for name, s in scores.items() if s is None or s < 0.8} == {}


def test_sessions_in_trouble_are_unreliable() -> None:
    scores = reliability("troubled")
    missed = {name: score for name, score in scores.items() if score is None or score >= 0.5}

    assert len(missed) <= 0.05 * len(scores), missed


ALL_SIGNALS = ["confidence", "loop_detection", "tool_correctness", "coherence"]


@pytest.mark.parametrize(
    ("session", "options", "score"),
    [
        ("honest: not sure", {}, 0.85),
        ("honest: not sure", {"inputs": "raw"}, 0.75),
        ("repeated: read it again", {"inputs": "raw"}, 0.0),
        ("recovered: retried", {}, 0.95),
        ("recovered: retried", {"inputs": "raw"}, 0.6),
    ],
)
def test_the_documents_own_inputs_can_be_configured(
    session: str, options: Any, score: float
) -> None:
    found = scored({session: every("healthy")[session]}, **options)

    scores = {each["score"] for each in found if each["evaluator"] == "agent_reliability"}
    assert scores == {score}


def test_coherence_of_the_local_embedder_counts_where_it_is_named() -> None:
    session = "honest: not sure"

    found = scored({session: every("healthy")[session]}, inputs="raw", signals=ALL_SIGNALS)

    (measured, _) = [each for each in found if each["evaluator"] == "coherence"]
    (reliable, _) = [each for each in found if each["evaluator"] == "agent_reliability"]
    assert (measured["outcome"], measured["success"]) == ("measured", None)
    assert reliable["score"] == pytest.approx(measured["metadata"]["value"], abs=1e-4)
