"""docs/agents: what the pages show of a trace is what the recording that they name gives."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluators.dialects.decoding.values import as_dict, as_list
from evaluators.dialects.show import show
from tests.support.made_spans import traces

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "agents").glob("*.md"))
SHOWN = re.compile(
    r"`(tests/data/captures_logs/\S+?)(?:\.logs)?\.otlp`.*?```json\n(.*?)```", re.DOTALL
)


def holds(shown: Any, whole: Any) -> bool:
    """Whether every value shown is there."""
    if isinstance(shown, dict):
        found = as_dict(whole)
        return all(key in found and holds(v, found[key]) for key, v in as_dict(shown).items())
    if isinstance(shown, list):
        wanted, found = as_list(shown), as_list(whole)
        return len(wanted) == len(found) and all(map(holds, wanted, found))
    return bool(shown == whole)


def examples() -> list[tuple[str, Path, str]]:
    return [
        (page.stem, ROOT / named, text)
        for page in PAGES
        for named, text in SHOWN.findall(page.read_text(encoding="utf-8"))
    ]


def test_there_are_pages_with_examples() -> None:
    assert {"claude-code", "codex"} <= {page for page, _, _ in examples()}


@pytest.mark.parametrize(
    ("page", "recording", "text"), examples(), ids=lambda value: str(value)[:20]
)
def test_the_trace_that_a_page_shows_is_what_its_recording_gives(
    page: str, recording: Path, text: str
) -> None:
    (trace,) = map(show, traces(recording.parent, recording.name))

    assert holds(json.loads(text), trace), page
