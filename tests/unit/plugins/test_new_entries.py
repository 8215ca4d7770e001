"""A new close reason, metric family and log adapter are each a word or a line; forgetting it fails here."""

import json
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from prometheus_client import CollectorRegistry

import collector
from collector.assembly.open_trace import Deadline, OpenTrace
from collector.base.clock import Clock, wall
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, LogConfig, TraceWindow
from collector.export.families import AgentFamilies
from collector.judging.port import SessionJob
from collector.log.memory import MemoryLog
from collector.log.port import SPANS, Log, New
from collector.records.sessions import SessionTurn
from collector.records.signal import Signal
from collector.records.traces import SessionRecord
from collector.service import families
from collector.service.families import FAMILIES, declare_families
from collector.service.logs import LOGS, open_log
from evaluators.model import Closed, Session, SessionClosed, Trace
from tests.support.assembling import Site
from tests.support.spans import root

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operate.md").read_text()
SCHEMA: dict[str, Any] = json.loads(
    (Path(collector.__file__).parent / "records" / "signal.schema.json").read_text()
)
OF_A_TRACE, OF_A_SESSION = get_args(Closed), get_args(SessionClosed)


def words_of(record: type[Any]) -> set[str]:
    """The reasons that the record's field `closed` may hold."""
    hint = get_type_hints(record)["closed"]
    words = {word for each in get_args(hint) for word in (get_args(each) or (each,))}
    return {word for word in words if isinstance(word, str)}


def test_every_reason_is_in_docs_schema_and_records() -> None:
    for reasons, metric in ((OF_A_TRACE, "traces_closed"), (OF_A_SESSION, "sessions_closed")):
        (rows,) = re.findall(
            rf"^\| `spanwise_{metric}_total[^\n]*\n(?:\| \|[^\n]*\n)*", PAGE, re.MULTILINE
        )
        assert set(reasons) <= set(re.findall(r"`([a-z_]+)`", rows))
    assert {*OF_A_TRACE, *OF_A_SESSION} <= set(SCHEMA["properties"]["closed"]["enum"])
    for record in (Trace, SessionTurn):
        assert words_of(record) == set(OF_A_TRACE), record
    for record in (Session, SessionRecord, SessionJob):
        assert words_of(record) == set(OF_A_SESSION), record
    assert words_of(Signal) == {*OF_A_TRACE, *OF_A_SESSION}


async def test_a_trace_closes_for_the_new_reason_and_is_counted_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason: Any = "reason_of_this_test"

    def deadline(trace: OpenTrace, _windows: TraceWindow) -> Deadline:
        return Deadline(trace.first_time + 1, reason)

    monkeypatch.setattr(OpenTrace, "deadline", deadline)
    site = Site()
    site.send(100, root())

    await site.once(102)

    assert site.count("traces_closed_total", service="shop", reason=reason) == 1


class NewFamilies:
    """The file that a newcomer adds, with its family."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.examples = telemetry.counter("family_of_this_test", "Examples, by reason.", "reason")


def unlisted() -> set[str]:
    """The classes of every `families.py` that FAMILIES lacks; those about agents belong to role `publish` alone."""
    modules = [
        import_module(each.name)
        for each in pkgutil.walk_packages(collector.__path__, "collector.")
        if each.name.endswith(".families") and each.name != families.__name__
    ]
    return {
        name
        for module in modules
        for name, value in vars(module).items()
        if name.endswith("Families") and value not in (*FAMILIES, AgentFamilies)
    }


def test_a_new_family_stands_in_the_exposition_before_the_first_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(families, "FAMILIES", (*FAMILIES, NewFamilies))
    telemetry = Telemetry(CollectorRegistry())

    declare_families(telemetry)
    NewFamilies(telemetry)  # the same one at every later call
    body, _ = telemetry.exposition("text/plain")

    assert b"# HELP spanwise_family_of_this_test_total Examples, by reason." in body


def test_a_forgotten_line_fails_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unlisted() == set()

    monkeypatch.setattr("collector.api.families.NewFamilies", NewFamilies, raising=False)

    assert unlisted() == {"NewFamilies"}


class NewLog(MemoryLog):
    """The file that a newcomer adds."""


async def open_new_log(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    del config
    return NewLog(clock=clock, telemetry=telemetry)


KIND: Any = "log_of_this_test"
CONFIGURED = Config(log=LogConfig.model_construct(kind=KIND))
"""With a kind that the published schema does not list yet."""


async def test_a_row_is_all_that_a_new_log_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOGS, KIND, open_new_log)

    log = await open_log(CONFIGURED, wall, Telemetry())

    assert isinstance(log, NewLog)
    assert await log.write([New(topic=SPANS, key=b"k", value=b"span")])
    await log.close()


async def test_a_forgotten_row_ends_the_start_and_no_row_is_forgotten() -> None:
    with pytest.raises(KeyError, match=KIND):
        await open_log(CONFIGURED, wall, Telemetry())

    assert set(LOGS) == set(get_args(LogConfig.model_fields["kind"].annotation))
