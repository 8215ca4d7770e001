"""A new close reason: a word in `Closed` or `SessionClosed` (evaluators/model.py), and the place where it closes.

Records, signals and counters take the word from there. Forgetting it in docs/operate.md or in the schema fails here.
"""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import collector
from collector.assembly.open_trace import Deadline, OpenTrace
from collector.config.tree import TraceWindow
from collector.judging.port import SessionJob
from collector.records.sessions import SessionTurn
from collector.records.signal import Signal
from collector.records.traces import SessionRecord
from evaluators.model import Closed, Session, SessionClosed, Trace
from tests.support.assembling import Site
from tests.support.spans import root

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operate.md").read_text()
SCHEMA: dict[str, Any] = json.loads(
    (Path(collector.__file__).parent / "records" / "signal.schema.json").read_text()
)
REASON = "reason_of_this_test"
OF_A_TRACE, OF_A_SESSION = get_args(Closed), get_args(SessionClosed)


def undocumented(reasons: Collection[str], metric: str) -> set[str]:
    """The reasons that the rows of the metric in docs/operate.md do not explain."""
    rows = re.search(rf"^\| `spanwise_{metric}[^\n]*\n(?:\| \|[^\n]*\n)*", PAGE, re.MULTILINE)
    assert rows is not None
    return set(reasons) - set(re.findall(r"`([a-z_]+)`", rows[0]))


def words_of(record: type[Any]) -> set[str]:
    """The reasons that the record's field `closed` may hold."""
    hint = get_type_hints(record)["closed"]
    words = {word for each in get_args(hint) for word in (get_args(each) or (each,))}
    return {word for word in words if isinstance(word, str)}


def test_every_reason_stands_in_docs_and_schema() -> None:
    assert undocumented(OF_A_TRACE, "traces_closed_total") == set()
    assert undocumented(OF_A_SESSION, "sessions_closed_total") == set()
    assert {*OF_A_TRACE, *OF_A_SESSION} <= set(SCHEMA["properties"]["closed"]["enum"])


def test_records_take_the_words_from_the_two_lists() -> None:
    for record in (Trace, SessionTurn):
        assert words_of(record) == set(OF_A_TRACE), record
    for record in (Session, SessionRecord, SessionJob):
        assert words_of(record) == set(OF_A_SESSION), record
    assert words_of(Signal) == {*OF_A_TRACE, *OF_A_SESSION}


async def test_a_trace_closes_for_the_new_reason_and_is_counted_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason: Any = REASON

    def deadline(trace: OpenTrace, _windows: TraceWindow) -> Deadline:
        return Deadline(trace.first_time + 1, reason)

    monkeypatch.setattr(OpenTrace, "deadline", deadline)
    site = Site()
    site.send(100, root())

    await site.once(102)

    assert site.count("traces_closed_total", service="shop", reason=REASON) == 1
