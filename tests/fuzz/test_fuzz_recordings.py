"""Recordings offline: whatever the file, it is scored or one error; the service says the same live."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from collector.base.frames import pack_frame
from collector.commands import cli
from tests.fuzz.conftest import RANDOM, SEEDS, Fuzz, corpus, seed
from tests.fuzz.pipeline import check_signal, check_signals
from tests.support.command import spanwise
from tests.support.mutation import mutated, otlp_json, torn
from tests.support.recordings import trace_ids
from tests.support.sender import send
from tests.support.service import Service

pytestmark = pytest.mark.timeout(7200)


def check_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Signals that are valid, or one line that names the file."""
    code = cli.main(["evaluate", str(file), "--format", "jsonl", "--set", "embedder.kind=none"])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    if code == 0:
        check_signals([line.encode() for line in said.out.split("\n") if line])
    else:
        assert code == 1
        assert str(file) in said.err.splitlines()[-1]
        assert said.err.count("\n") <= 2  # the other one counts rejected spans
        assert said.out == ""


def test_torn_recordings_are_scored_or_one_error(
    fuzz: Fuzz, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(number: int, random: Random) -> None:
        request = mutated(seed(number), random)
        name = random.choice(("a.otlp", "a.otlp.gz", "a.jsonl"))
        whole = otlp_json(request) + b"\n" if name == "a.jsonl" else pack_frame(request)
        whole = gzip.compress(whole) if name == "a.otlp.gz" else whole
        (tmp_path / name).write_bytes(random.choice((whole, torn(whole, random))))
        check_file(tmp_path / name, capsys)

    fuzz(check, SEEDS, RANDOM)


@pytest.mark.parametrize("file", corpus("recordings"), ids=lambda file: file.name)
def test_recordings_that_once_broke_something_do_not(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_file(file, capsys)


def finals(signals: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """What final signals of traces say, by id."""
    return {
        each["id"]: (each["outcome"], each["score"], each["reason"], each["explanation"])
        for each in signals
        if each["final"] and each["scope"] == "trace"
    }


@pytest.mark.e2e
def test_changed_recordings_say_the_same_live_and_offline(tmp_path: Path) -> None:
    requests = list(_of_different_traces(Random(10)))
    traces = frozenset[str]().union(*map(trace_ids, requests))
    recording = tmp_path / "changed.otlp"
    recording.write_bytes(b"".join(map(pack_frame, requests)))
    ended = spanwise("evaluate", str(recording), "--format", "jsonl", "--set", "embedder.kind=none")
    assert ended.code == 0, ended.err
    offline = [json.loads(line) for line in ended.out.split("\n") if line]
    scored = {each["trace_id"] for each in offline if each["scope"] == "trace"}
    waits = (f"windows.trace.{each}=1s" for each in ("root_grace", "local_root_grace", "idle"))

    with Service(tmp_path / "data", "embedder.kind=none", *waits) as service:
        send(service.grpc, *requests)
        service.wait_for(
            "every trace is scored",
            lambda: scored <= {each["trace_id"] for each in service.signals()},
            timeout=60,
        )
        live = [check_signal(line.encode()) for line in service.signal_lines()]

    assert len(scored) > 20
    assert scored <= traces
    assert finals(live) == finals(offline)


def _of_different_traces(random: Random) -> Iterator[bytes]:
    """Requests that share no trace, so that no trace is ever late."""
    seen: set[str] = set()
    for number in range(60):
        request = mutated(seed(number * 7), random)
        ids = trace_ids(request)
        if (
            ids
            and seen.isdisjoint(ids)
            and all(len(each) == 32 and each.strip("0") for each in ids)
        ):
            seen |= ids
            yield request
