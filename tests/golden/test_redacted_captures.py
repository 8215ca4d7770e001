"""With every built-in kind of `redaction.patterns`, recordings read as without, but where real addresses stand.

A trace that reads the same has the same scores. `SPANWISE_CAPTURES` names another folder of recordings.
"""

import re

import msgspec
import pytest

from collector.config.tree import Config
from collector.service.recorded_traces import read_recordings
from collector.service.recordings import find
from tests.golden.test_captures import FOLDER, STACKS

PATTERNS = {kind: kind for kind in ("email", "card", "phone", "token")}
ADDRESS = re.compile(rb"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[a-z]{2,}")


def read(stack: str, patterns: dict[str, str]) -> dict[str, bytes]:
    """Every trace by its id, as JSON."""
    config = Config.model_validate({"workers": 0, "redaction": {"patterns": patterns}})
    files = find([FOLDER / stack]).files
    with read_recordings(config, files, lambda _path: None) as recorded:
        return {each.trace_id: msgspec.json.encode(each) for each in recorded.closed.traces()}


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_but_secrets_is_taken_for_one(stack: str) -> None:
    plain, redacted = read(stack, {}), read(stack, PATTERNS)

    assert redacted.keys() == plain.keys()
    changed = [trace for trace in plain if redacted[trace] != plain[trace]]
    assert [trace for trace in changed if not ADDRESS.search(plain[trace])] == []
