"""No outlet passes on a character that commands a terminal or turns a line around, whoever wrote it."""

import io
import json
import logging
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.base.printable import (
    PrintableFormatter,
    escape_json,
    log_to_stderr,
    one_line,
    printable,
)
from collector.commands.aggregates import passing
from collector.commands.doctor import print_diagnosis
from collector.commands.inspect import trace_list
from collector.commands.output import find_recordings, note, note_rejected, summary_table
from collector.commands.signal_table import SignalTable
from collector.doctor.diagnosis import Diagnosis, Finding, Stack
from collector.records.signal import encode_signal
from collector.records.traces import RunRecord
from evaluators.dialects.content.names import clean
from evaluators.model import ToolCall
from tests.support.api_records import trace
from tests.support.command import Run
from tests.support.signals import signal
from tests.support.table import for_each

BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Unicode's property of this name."""
COMMANDS = "".join(
    char
    for char in map(chr, range(0x11000))
    if unicodedata.category(char) in ("Cc", "Zl", "Zp") or char in BIDI_CONTROL
)
ALL = "before" + COMMANDS + "after"


def commanding(text: str) -> set[str]:
    return {char for char in text if char in COMMANDS and char not in "\n\t"}


def logged(message: str, *fields: object, error: BaseException | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableFormatter("%(name)s: %(message)s"))
    trail = None if error is None else (type(error), error, error.__traceback__)
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, message, fields, trail))
    return stream.getvalue()


def of_signals(stream: io.StringIO) -> None:
    each = signal(service=ALL, session=ALL, evaluator=ALL, explanation=ALL)
    table = SignalTable(stream, 1_000, shows=lambda _: True)
    table.add(ALL, ALL, [json.loads(encode_signal(each)) | {"outcome": ALL, "trace_id": ALL}])


def of_the_summary(stream: io.StringIO) -> None:
    run = RunRecord(service=ALL, agent=ALL, task_id=ALL, session_id=ALL, ended=1.0, success=True)
    none: dict[str, float] = {}
    scored = {ALL: {"outcomes": {"scored": 1}, "scores": {"mean": 0.5}}}
    totals: dict[str, Any] = dict.fromkeys(("latency", "cost", "token_usage"), none)
    tasks = passing([run] * 3, window=10)
    assert tasks["passing"]
    summary_table(stream, {"traces": 1, "evaluators": scored, "tasks": tasks, **totals})


def of_traces(stream: io.StringIO) -> None:
    fields = ("service", "agent", "session_id", "input", "output", "error")
    trace_list(stream, [trace(tool_calls=(ToolCall(name=ALL),), **dict.fromkeys(fields, ALL))])


def of_the_doctor(stream: io.StringIO) -> None:
    finding = Finding(lack="no_session", traces=1, stops=(ALL,), example=ALL, advice=(), says=ALL)
    said = dict.fromkeys(("dialects", "scopes", "sdks"), (ALL,))
    stack = Stack(service=ALL, traces=1, turns=1, findings=(finding,), **said)
    print_diagnosis(stream, Diagnosis(stacks=(stack,), stops=()))


@for_each("table", [of_signals, of_the_summary, of_traces, of_the_doctor])
def test_a_table_holds_none(table: Callable[[io.StringIO], None]) -> None:
    stream = io.StringIO()

    table(stream)

    assert "after" in stream.getvalue() or "before" in stream.getvalue()
    assert commanding(stream.getvalue()) == set()


def test_a_note_is_one_line_and_so_is_that_of_a_file_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "\x1b[2J\u202e.metrics.otlp.gz"
    file.write_bytes(b"not read")

    note(ALL)
    note_rejected(1, [ALL])
    find_recordings([file])

    said = capsys.readouterr().err
    assert (said.count("\n"), "left out" in said) == (3, True)
    assert commanding(said) == set()


@for_each(
    "arguments",
    [
        ["evaluate", "\x1b]0;owned\x07\u202e.otlp"],
        ["inspect", "\udcff\x9b31m"],
        ["evaluate", ".", "--fail-under", "\x1b[2J"],
        ["validate", "--set", "log.kind=\x1b[2J\u202e"],
        ["validate", "--set", "\x1b[2J=1"],
        ["\x1b[2J"],
        ["replay", "--since", "\x1b[2J"],
    ],
)
def test_an_error_that_quotes_what_was_given_holds_none(arguments: list[str], run: Run) -> None:
    done = run(*arguments)

    assert done.code != 0
    assert done.err
    assert commanding(done.err) == set()
    done.err.encode()


def test_a_log_line_stays_one_line_and_a_traceback_keeps_its_lines() -> None:
    error = ValueError(ALL)

    line, *trail = logged("Sink `%s` fails: %s %r", ALL, ALL, ALL, error=error).splitlines()

    assert commanding(line) == set()
    assert "Sink `before\\x00" in line
    assert trail[0].startswith("ValueError: before")
    assert commanding("\n".join(trail)) == set()


def test_a_process_logs_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    root, stream = logging.RootLogger(logging.WARNING), io.StringIO()
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(sys, "stderr", stream)
    log_to_stderr(logging.INFO)
    root.info("Service %s", ALL)

    assert stream.getvalue().count("\n") == 1
    assert commanding(stream.getvalue()) == set()


@pytest.mark.process
def test_a_child_process_logs_through_it() -> None:
    code = (
        "import logging; from collector.base.frames import parent_socket\n"
        "with parent_socket(0): logging.getLogger('x').warning('a\\x1b[2J\\nb')"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-c", code, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            capture_output=True,
            text=True,
            check=True,
        )

    assert done.stderr.endswith(" WARNING x: a\\x1b[2J\\x0ab\n")


def test_the_json_of_a_signal_holds_none_and_says_the_same() -> None:
    made = signal(explanation=ALL, metadata={"task" + ALL: [ALL]})

    value = encode_signal(made)

    assert commanding(value.decode()) == set()
    assert json.loads(value)["explanation"] == ALL
    assert json.loads(value)["metadata"] == {"task" + ALL: [ALL]}


@for_each("text", ["", "äöü 漢字 🙂 \u200d", 'a\nb\t"c"\\', "3 of 4 calls"])
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert escape_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_names_and_printed_texts_know_the_same_characters() -> None:
    for code in range(0x110000):
        char = chr(code)
        assert (clean(char) == char) == (one_line(char) == char), hex(code)
