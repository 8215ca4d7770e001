"""Recordings as signals: which sessions, in which order, and what of each."""

import asyncio
import gzip
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import ConfigError
from collector.base.frames import pack_frame
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service import trace_spool
from collector.service.evaluation import ClosedSession, evaluate_recordings
from collector.service.recorded_traces import read_recordings
from collector.service.trace_spool import TraceSpool
from tests.support import api_records as make
from tests.support.dialect_spans import SpanSpec, request

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
        content = b"".join(map(pack_frame, bodies))
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


def test_a_full_temporary_folder_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_spool, "IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    files = written(tmp_path, {"a.otlp": [tool(1, 1, end=1, session="s")]})

    with pytest.raises(ConfigError) as raised:
        closed(*files)

    (line,) = str(raised.value).splitlines()
    assert line.startswith(f"{tmp_path}/missing: No such file or directory; ")
    assert "TMPDIR" in line


def test_without_a_temporary_folder_the_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(trace_spool, "IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", none)
    files = written(tmp_path, {"a.otlp": [tool(1, 1, end=1, session="s")]})

    with pytest.raises(ConfigError, match=r"^TMPDIR: No usable temporary directory found; "):
        closed(*files)


def test_two_traces_with_one_id_are_both_scored() -> None:
    """An agent's turn goes by the id that its command's trace has, too."""
    kept = TraceSpool()
    with kept:
        for session in (b"turn", b"command"):
            kept.put(session, make.trace_value(make.trace(1, session_id=session.decode())))

        found = [each.session_id for each in kept.traces()]

    assert sorted(found) == ["command", "turn"]
