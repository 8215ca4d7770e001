"""Recordings of real agent libraries: what they carry is what we read, and their signals are valid.

`SPANWISE_CAPTURES` names another folder of recordings with expectations.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

import collector
from collector.config.tree import Config
from collector.service.recorded_traces import read_recordings
from collector.service.recordings import find
from tests.support.capture_score import Claim, assert_most_hold, score
from tests.support.recorded_signals import signals_of

OURS = Path(__file__).parents[1] / "data" / "captures"
FOLDER = Path(os.environ.get("SPANWISE_CAPTURES") or OURS)
LACKING = {
    ("claude_agent_oi", "models"),
    ("genkit", "user_id"),
    ("logfire_agents", "tools_offered"),
    ("oai_agents_oi_chat", "tools_offered"),
}
"""Of our recordings, what is not read although the bytes hold it: all else is, without an exception."""
STACKS = sorted({path.parent.name for path in FOLDER.glob("*/*.expect.yaml")})
MORE = FOLDER.with_name("captures_more")
"""One recording of each framework that has a page of its own in docs/frameworks and is in no other folder."""
MORE_STACKS = sorted(path.parent.name for path in MORE.glob("*/*.expect.yaml"))
SCHEMA: dict[str, Any] = json.loads(
    (Path(collector.__file__).parent / "records" / "signal.schema.json").read_text()
)
PATTERNS = {kind: kind for kind in ("email", "card", "phone", "token")}
ADDRESS = re.compile(rb"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[a-z]{2,}")


@cache
def claims() -> list[Claim]:
    return [*score(FOLDER), *score(MORE)]


@pytest.mark.parametrize("stack", [*STACKS, *MORE_STACKS])
def test_a_stack_is_read_right(stack: str) -> None:
    mine = [each for each in claims() if each.stack == stack]
    if FOLDER != OURS:
        assert_most_hold(mine, 0.95)
    else:
        assert_most_hold([each for each in mine if (stack, each.field) not in LACKING], 1)


def test_all_stacks_together_are_read_right() -> None:
    assert_most_hold(claims(), 0.99)


@pytest.mark.parametrize("stack", STACKS)
def test_every_signal_of_a_stack_is_valid(stack: str) -> None:
    validator = Draft202012Validator(SCHEMA)

    signals = signals_of(Config(workers=0), *find([FOLDER / stack]).files)

    assert signals
    wrong = [
        (signal["evaluator"], error.message)
        for signal in signals
        for error in validator.iter_errors(signal)  # pyright: ignore[reportUnknownMemberType] - its stub is partial
    ]
    assert wrong == []


def read(stack: str, patterns: dict[str, str]) -> dict[str, bytes]:
    """Every trace by its id, as JSON."""
    config = Config.model_validate({"workers": 0, "redaction": {"patterns": patterns}})
    files = find([FOLDER / stack]).files
    with read_recordings(config, files, lambda _path: None) as recorded:
        return {each.trace_id: msgspec.json.encode(each) for each in recorded.closed.traces()}


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_but_secrets_is_taken_for_one(stack: str) -> None:
    """With every built-in kind of `redaction.patterns`; only where real addresses stand is another text read."""
    plain, redacted = read(stack, {}), read(stack, PATTERNS)

    assert redacted.keys() == plain.keys()
    changed = [trace for trace in plain if redacted[trace] != plain[trace]]
    assert [trace for trace in changed if not ADDRESS.search(plain[trace])] == []
