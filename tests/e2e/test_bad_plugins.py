"""Evaluators of third parties that exit, die, hang, print and worse: every score of ours arrives all the same."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from collector.base.frames import pack_frame
from tests.support.asking import asked, trace_id
from tests.support.bad_plugins import DIES, KINDS, bad
from tests.support.command import spanwise
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
TRACES = 20
LATEST = 30.0
"""Seconds from a trace to the last of our scores of it."""
SETTINGS = ("embedder.kind=none", "windows.trace.root_grace=300ms")


def told_of(signals: list[dict[str, Any]]) -> dict[str, set[str | None]]:
    """By evaluator, how its evaluations of traces ended: a type of error, or None."""
    found: dict[str, set[str | None]] = {}
    for each in signals:
        if each["scope"] == "trace":
            kind = each["error"] and each["error"]["type"]
            found.setdefault(each["evaluator"], set()).add(kind)
    return found


def ours(signals: list[dict[str, Any]]) -> dict[str, set[str]]:
    """By trace, our evaluators that said something else than `failed`."""
    found: dict[str, set[str]] = {}
    for each in signals:
        is_ours = each["scope"] == "trace" and "/" not in each["evaluator"]
        if is_ours and each["outcome"] != "failed":
            found.setdefault(each["trace_id"], set()).add(each["evaluator"])
    return found


def every_trace() -> set[str]:
    return {trace_id(f"s{number}") for number in range(TRACES)}


@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), KINDS], ids="-".join)
def test_live_every_score_of_ours_arrives_beside(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    plugin = bad(tmp_path, *kinds)
    with Service(tmp_path / "data", *SETTINGS, f'plugins=["{plugin}"]') as service:
        send(service.grpc, asked("warm-up", "hello"))
        service.wait_for("a first score", lambda: ours(service.signals()))
        began = time.monotonic()
        send(service.grpc, *(asked(f"s{n}", "hello", number=0) for n in range(TRACES)))
        service.wait_for(
            "every score of ours",
            lambda: every_trace() <= ours(service.signals()).keys(),
            timeout=LATEST,
        )
        took = time.monotonic() - began
        found = ours(service.signals())
        assert took < LATEST
        assert len(set(map(frozenset, (found[each] for each in every_trace())))) == 1
        service.wait_for(
            "a word of each plug-in",
            lambda: {f"bad/{kind}" for kind in kinds} <= told_of(service.signals()).keys(),
        )
        assert service.get("/readyz") is not None
        assert service.metrics().get('spanwise_worker_restarts_total{reason="never_up"}', 0) == 0


def test_one_that_ends_its_process_is_named_and_switched_off(tmp_path: Path) -> None:
    plugin = bad(tmp_path, "ends_the_process", "prints")
    with Service(tmp_path / "data", *SETTINGS, f'plugins=["{plugin}"]') as service:
        send(service.grpc, *(asked(f"s{n}", "hello") for n in range(TRACES)))

        def fates() -> dict[str, set[str | None]]:
            told = told_of(service.signals())
            return {name: told.get(name, set()) for name in told if name.startswith("bad/")}

        service.come_to(
            {"bad/ends_the_process": {"worker_died", "switched_off"}, "bad/prints": {None}}, fates
        )
        gauge = 'spanwise_evaluator_switched_off{evaluator="bad/ends_the_process"}'
        service.come_to(1, lambda: service.metrics()[gauge])
        assert service.metrics()['spanwise_evaluator_switched_off{evaluator="bad/prints"}'] == 0
        rows = {each["name"]: each for each in service.get("/api/v1/evaluators")["items"]}
        assert rows["bad/ends_the_process"]["switched_off"]
        assert not rows["bad/prints"]["switched_off"]
        with urllib.request.urlopen(f"{service.admin}/evaluators", timeout=10) as answer:
            assert answer.read().count(b"Switched off for ten minutes") == 1
    assert service.output.read_text().count("is switched off for 10 min") == 1


@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), KINDS], ids="-".join)
def test_evaluate_has_every_score_of_ours_beside(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    recording = tmp_path / "recorded.otlp"
    requests = [asked(f"s{number}", "hello") for number in range(TRACES)]
    recording.write_bytes(b"".join(map(pack_frame, requests)))
    plugin = bad(tmp_path, *kinds)
    began = time.monotonic()

    ended = spanwise(
        *("evaluate", str(recording), "--format", "jsonl", "--plugin", str(plugin)),
        *("--set", "embedder.kind=none", "--set", f"data_dir={tmp_path / 'data'}"),
    )

    # The bar is of one bad part; each of twelve takes its own time before it is switched off.
    assert time.monotonic() - began < LATEST * (1 if len(kinds) == 1 else 3)
    assert ended.code == 0, ended.err
    signals = [json.loads(line) for line in ended.out.splitlines()]
    found = ours(signals)
    assert found.keys() == every_trace()
    assert len(set(map(frozenset, found.values()))) == 1
    told = told_of(signals)
    assert {f"bad/{kind}" for kind in kinds} <= told.keys()
    for kind in kinds:
        if kind in {"leaves_threads", "prints"}:  # at its bound of memory no more threads begin
            assert None in told[f"bad/{kind}"]
        else:
            assert None not in told[f"bad/{kind}"]
        if kind in DIES:
            assert "switched_off" in told[f"bad/{kind}"]
