"""Recordings as signals: what is read, which sessions, in which order; with scores and evaluators of others."""

import asyncio
import gzip
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

import spanwise
from collector.base.errors import ConfigError
from collector.base.frames import pack_frame
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service import trace_spool
from collector.service.evaluation import ClosedSession, evaluate_recordings
from collector.service.logs import groups
from collector.service.recorded_traces import read_recordings
from collector.service.recordings import MAX_RATIO, MAX_REQUEST, UNFOLDED, requests
from collector.service.trace_spool import TraceSpool
from tests.support import agents, plugin
from tests.support import api_records as make
from tests.support.asking import asked
from tests.support.asking import said as message
from tests.support.command import Run
from tests.support.dialect_spans import SpanSpec, key_values, request
from tests.support.recorded_signals import signals_of
from tests.support.table import for_each


def framed(*bodies: bytes) -> bytes:
    return b"".join(map(pack_frame, bodies))


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        list(requests(path))
    (line,) = str(raised.value).splitlines()
    assert line.startswith(f"{path}: ")
    return line


def test_every_request_is_read(tmp_path: Path) -> None:
    bodies = [asked("s", "Where?", number=n) for n in range(3)] + [b""]

    for file in written(tmp_path, {"a.otlp": bodies, "a.otlp.gz": bodies}):
        assert list(requests(file)) == bodies


def lines(bad: str) -> bytes:
    """OTLP/JSON, the third line bad."""
    good = '{"resourceSpans": []}'
    return f"{good}\n\n{bad}\n{good}\n".encode()


@for_each(
    ("name", "content", "says"),
    [
        ("a.otlp", struct.pack(">I", MAX_REQUEST + 1), f"a request of {MAX_REQUEST + 1} bytes"),
        ("a.otlp", b"\xff" * 4, f"a request of {0xFFFFFFFF} bytes"),
        *(
            ("a.otlp", framed(asked("s", "Where?"))[:cut], "ends in the middle of a request")
            for cut in (2, 4, 10)
        ),
        ("a.jsonl", lines("{oops"), "line 3: the body is not JSON: Expecting property name"),
        ("a.jsonl", lines("[]"), "not OTLP/JSON lines: line 3: "),
        ("a.jsonl", lines('{"resourceSpans": 3}'), "not OTLP/JSON lines: line 3: "),
    ],
)
def test_what_is_bad_in_a_file_is_named_and_nothing_is_guessed(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)

    assert says in refusal(tmp_path / name)


@for_each("name", ["pipe.otlp", "pipe.otlp.gz", "pipe.jsonl"])
def test_only_a_regular_file_is_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)

    assert refusal(tmp_path / name).endswith("not a regular file")
    assert "NUL" in refusal(Path("a\0b.otlp"))


def test_a_compressed_file_may_grow_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.otlp.gz"
    member = gzip.compress(framed(bytes(32 << 20)), 9)
    assert len(member) * MAX_RATIO * 9 < UNFOLDED
    path.write_bytes(member * (UNFOLDED // (32 << 20) - 1))
    assert sum(map(len, requests(path))) < UNFOLDED

    path.write_bytes(member * (UNFOLDED // (32 << 20) + 1))

    assert "unfolds to more than" in refusal(path)


ONLY = ["repeated_calls", "step_efficiency"]


def tool(trace: int, span: int, *, end: int, session: str | None, arguments: str = "{}") -> bytes:
    """A request with one tool call of a trace."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": arguments,
        "gen_ai.tool.call.result": "none",
    }
    said = {} if session is None else {"gen_ai.conversation.id": session}
    spec = SpanSpec(id=span, attributes=attributes | said, start=end - 1, end=end)
    return request(spec, trace_id=f"{trace:032x}")


def closed(*files: Path) -> list[ClosedSession]:
    """The sessions of the recordings, as they close."""
    config = Config(workers=0)
    sessions: list[ClosedSession] = []
    asyncio.run(
        evaluate_recordings(
            config, plan_from(config, only=ONLY), files, lambda _: None, sessions.append
        )
    )
    return sessions


def decoded(session: ClosedSession) -> list[dict[str, Any]]:
    return [json.loads(each) for each in session.signals]


def written(folder: Path, requests: Mapping[str, list[bytes]]) -> list[Path]:
    for name, bodies in requests.items():
        content = framed(*bodies)
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return [folder / name for name in requests]


def test_sessions_close_in_the_order_of_their_newest_spans_end_and_their_ids(
    tmp_path: Path,
) -> None:
    """Whatever file, request or trace the spans stand in."""
    files = written(
        tmp_path,
        {
            "b.otlp": [tool(1, 1, end=30, session="late"), tool(2, 2, end=10, session="z")],
            "a.otlp.gz": [
                tool(3, 3, end=10, session="a"),
                tool(1, 4, end=40, session=None),
                tool(4, 5, end=20, session=None),
                tool(5, 6, end=5, session="late"),
            ],
        },
    )

    sessions = closed(*files)

    keys = [each.key.decode().split("\0")[1] for each in sessions]
    assert keys == ["a", "z", f"{4:032x}", "late"]
    assert [(each.number, each.of) for each in sessions] == [(n, 4) for n in range(1, 5)]
    of_traces = {s["trace_id"] for s in decoded(sessions[-1])}
    assert of_traces == {f"{1:032x}", f"{5:032x}", None}


def test_signals_are_final_and_the_sessions_own_come_last(tmp_path: Path) -> None:
    """The session's evaluators are computed after each of its traces: the last is the one that closed it."""
    files = written(tmp_path, {"a.otlp": [tool(n, n, end=n, session="s") for n in (3, 1, 2)]})

    (session,) = closed(*files)

    signals = decoded(session)
    assert [each["evaluator"] for each in signals] == ["step_efficiency"] * 3 + ["repeated_calls"]
    assert [each["trace_id"] for each in signals[:3]] == [f"{n:032x}" for n in (1, 2, 3)]
    assert {each["final"] for each in signals} == {True}
    assert session.record is not None
    assert session.record.session_id == "s"


def test_traces_are_read_in_the_order_of_their_starts(tmp_path: Path) -> None:
    files = written(tmp_path, {"a.otlp": [tool(n, n, end=9 - n, session="s") for n in (1, 2, 3)]})

    with read_recordings(Config(workers=0), files, lambda _: None) as recorded:
        traces = [each.trace_id for each in recorded.closed.traces()]
        spans = [*recorded.pieces(traces[0])]

    assert traces == [f"{n:032x}" for n in (3, 2, 1)]
    assert spans == [tool(3, 3, end=6, session="s")]


@pytest.mark.parametrize("is_set", [True, False])
def test_a_temporary_folder_that_cannot_be_used_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool
) -> None:
    def none(*_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(trace_spool, "IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing") if is_set else None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", none)
    files = written(tmp_path, {"a.otlp": [tool(1, 1, end=1, session="s")]})

    with pytest.raises(ConfigError) as raised:
        closed(*files)

    (line,) = str(raised.value).splitlines()
    named, why = (
        (f"{tmp_path}/missing", "No such file or directory")
        if is_set
        else ("TMPDIR", "No usable temporary directory found")
    )
    assert line.startswith(f"{named}: {why}; ")
    assert "TMPDIR" in line


def test_two_traces_with_one_id_are_both_scored() -> None:
    """An agent's turn goes by the id that its command's trace has, too."""
    kept = TraceSpool()
    with kept:
        for session in (b"turn", b"command"):
            kept.put(session, make.trace_value(make.trace(1, session_id=session.decode())))

        found = [each.session_id for each in kept.traces()]

    assert sorted(found) == ["command", "turn"]


EVALUATION = "gen_ai.evaluation.result"


def said(name: str, value: float | str) -> list[KeyValue]:
    fields = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
    return list(key_values(fields))


def scored_by_others(folder: Path) -> Path:
    """A turn with scores of others in its events, in a span that links to it, and in a log record."""
    turn = agents.Turn(service="shop", session="s-1", number=0)
    made = ExportTraceServiceRequest.FromString(agents.request("shop", agents.spans(turn)))
    spans = made.resource_spans[0].scope_spans[0].spans
    for name, value in (("Tone", 0.2), ("Tone", 0.7), ("coherence", 7.0)):
        time = spans[0].end_time_unix_nano + int(10 * value)
        spans[0].events.add(name=EVALUATION, time_unix_nano=time, attributes=said(name, value))
    linked = spans.add(trace_id=bytes(range(1, 17)), span_id=bytes(range(1, 9)), name="evaluator")
    linked.links.add(trace_id=agents.trace_id(turn), span_id=spans[0].span_id)
    linked.attributes.extend(said("Help", "0.5"))
    logs = ExportLogsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add(
        event_name=EVALUATION,
        trace_id=agents.trace_id(turn),
        span_id=spans[0].span_id,
        attributes=said("of a record", 0.9),
    )
    (folder / "run.otlp").write_bytes(pack_frame(made.SerializeToString()))
    (folder / "run.logs.otlp").write_bytes(pack_frame(logs.SerializeToString()))
    return folder


def test_scores_of_others_are_signals_beside_ours_and_the_command_gives_the_same(
    tmp_path: Path, run: Run
) -> None:
    scores = spanwise.evaluate(scored_by_others(tmp_path))
    printed = run("evaluate", tmp_path, "--format", "jsonl").out.splitlines()

    found = {each["evaluator"]: each for each in scores if each["method"] == "external"}
    assert {name: each["score"] for name, each in found.items()} == {
        "tone": 0.7,
        "x_coherence": None,
        "help": 0.5,
        "of_a_record": 0.9,
    }
    assert found["x_coherence"]["error"]["type"] == "out_of_scale"
    assert {(each["session_id"], each["agent"]) for each in found.values()} == {("s-1", "support")}
    assert {each["id"] for each in scores} == {json.loads(each)["id"] for each in printed}
    assert len(scores) > len(found)


def test_a_trace_of_agents_whose_model_calls_left_no_spans_is_a_turn_and_scored(
    tmp_path: Path,
) -> None:
    """As Magentic-One's."""
    steps = (
        SpanSpec(
            id=number,
            parent=1,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.output.messages": message("assistant", text),
            },
            start=10 * number,
            end=10 * number + 9,
        )
        for number, agent, text in (
            (2, "Orchestrator", "Search for the year."),
            (3, "WebSurfer", "The page says 1969."),
            (4, "Orchestrator", "FINAL ANSWER: 1969"),
        )
    )
    files = written(tmp_path, {"a.otlp": [request(SpanSpec(id=1, name="chat", end=99), *steps)]})

    signals = signals_of(Config(workers=0), *files)

    scores = {signal["evaluator"]: signal["score"] for signal in signals}
    assert (scores["confidence"], scores["agent_reliability"]) == (1.0, 1.0)
    assert {signal["agent"] for signal in signals} == {"Orchestrator"}


ECHOES = """
from evaluators import History, Score, Trace, evaluator


@evaluator(version="1")
def echoes(trace: Trace, *, history: History) -> Score:
    \"""Share of the last three turns that were answered in the same way.\"""
    same = sum(each.output == trace.output for each in history.previous)
    return Score(value=same / 3, explanation=" | ".join(each.input or "" for each in history.previous))
"""


@pytest.mark.process
def test_an_evaluator_of_others_compares_each_turn_with_the_three_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ("yes", "yes", "no", "yes", "yes")
    turns = [asked("talk", f"question {n}", each, number=n) for n, each in enumerate(answers)]
    (file,) = written(tmp_path, {"talk.otlp": turns})
    assert "comparing" not in groups(Config())["traces"]
    folder = plugin.install(tmp_path / "installed", ECHOES)
    monkeypatch.setenv("PYTHONPATH", str(folder))

    with plugin.imported_from(folder):
        scores = spanwise.score(spanwise.read(file), evaluators=["this_test/echoes"])

        assert "comparing" in groups(Config())["traces"], "the log keeps traces until then"
    assert sorted((each["explanation"], each["score"]) for each in scores) == [
        ("", 0.0),
        ("question 0", 0.3333),
        ("question 0 | question 1", 0.0),
        ("question 0 | question 1 | question 2", 0.6667),
        ("question 1 | question 2 | question 3", 0.6667),
    ]
