"""The rooms between the receiver and the signals over a log whose clock the fuzzer sets, and what must hold of all."""

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

import collector
from collector.base.errors import TooLarge, Undecodable
from collector.base.printable import escape_json
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.log.port import SIGNALS, SPANS, TRACES, Record
from collector.otlp.split import SplitRequest, split_by_trace
from collector.reading.port import reader_settings
from collector.reading.worker import InlineWorkers, JobRunner
from collector.records.traces import TraceRecord, decode_traces
from collector.service.rooms import ASSEMBLY, SCORING, Rooms
from evaluators.model import Trace
from tests.support.faulty_log import FaultyLog
from tests.support.signals import jsons_in

CONFIG = Config.model_validate({"embedder": {"kind": "none"}})
PLAN = plan_from(CONFIG)
SCHEMA = json.loads((Path(collector.__file__).parent / "records/signal.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
RUNNER = JobRunner(reader_settings(CONFIG), PLAN)


Split = Callable[[bytes], SplitRequest]
SPLIT_SPANS: Split = partial(split_by_trace, max_item=1 << 20)


class Pipeline:
    """Assembly and scoring; every walk is another process over the same log."""

    def __init__(self) -> None:
        groups = {SPANS: frozenset({ASSEMBLY}), TRACES: frozenset({SCORING, "kept"})}
        self.telemetry = Telemetry()
        self.log = FaultyLog(telemetry=self.telemetry, groups=groups)
        self._rooms = Rooms(
            CONFIG,
            PLAN,
            log=self.log,
            workers=InlineWorkers(RUNNER),
            telemetry=self.telemetry,
            clock=self.log.clock,
        )

    def take(self, request: bytes, split: Split = SPLIT_SPANS) -> SplitRequest | None:
        """A request as the receiver takes it; None: it was refused."""
        try:
            taken = split(request)
        except (TooLarge, Undecodable):
            return None
        for piece in taken.pieces:
            self.log.append(SPANS, piece.value, key=piece.key)
        return taken

    def damage(self, topic: str, change: Callable[[bytes], bytes]) -> None:
        """A record like the newest of the topic, changed."""
        kept = self.log.history(topic)
        if kept:
            self.log.append(topic, change(kept[-1].value), key=kept[-1].key)

    async def walk(self) -> None:
        """Both rooms read to the end of what is there; what is due closes."""
        for room in (self._rooms.assembler(), self._rooms.scorer()):
            self.log.restart()
            self.log.at_end = asyncio.Event()
            await room.run(self.log.at_end)
            self.log.at_end = None

    async def end(self) -> None:
        """Every trace closes and is scored, every session closes."""
        self.log.restart()
        await self._rooms.assembler().drain("end")
        self.log.restart()
        await self._rooms.scorer().drain("idle")

    @property
    def signals(self) -> list[bytes]:
        """All that were published, in order."""
        return jsons_in(self.log.history(SIGNALS))

    @property
    def pieces(self) -> set[str]:
        """Traces that were only ever read as a piece of another trace's turn (`Trace.is_part`)."""
        closed = [each for each in map(_closed, self.log.history(TRACES)) if each is not None]
        turns = {each.trace_id for each in closed if not each.is_part}
        return {each.trace_id for each in closed} - turns

    @property
    def passed_over(self) -> float:
        """Records that no room could process."""
        found = self.telemetry.registry.collect()
        names = ("spanwise_poison_records_total", "spanwise_unknown_records_total")
        return sum(s.value for family in found for s in family.samples if s.name in names)


def _closed(record: Record) -> Trace | None:
    """The trace of a record that can be read."""
    try:
        found = decode_traces(record.value)
    except Undecodable:
        return None
    return found.trace if isinstance(found, TraceRecord) else None


def check_signals(values: Sequence[bytes]) -> list[dict[str, Any]]:
    """Every signal keeps what docs/signals.md promises; the signals.

    An id says one thing, unless its spans were sent again after more than an hour, when the trace is forgotten.
    """
    signals = [check_signal(each) for each in values]
    said: dict[tuple[str, str], Any] = {}
    for each in signals:
        content = {key: value for key, value in each.items() if key != "revision"}
        assert said.setdefault((each["id"], each["time"]), content) == content
    return signals


def check_signal(value: bytes) -> dict[str, Any]:
    """One signal: valid against the schema, a value or an error, small, on one line, without control characters."""
    text = value.decode()
    assert len(value) <= 64 * 1024
    assert escape_json(text) == text
    assert "\n" not in text
    signal: dict[str, Any] = json.loads(text, parse_constant=_no_constant)
    VALIDATOR.validate(signal)  # pyright: ignore[reportUnknownMemberType] - its stub is partial
    assert (signal["score"] is not None) == (signal["outcome"] == "scored"), signal
    assert (signal["error"] is not None) == (signal["outcome"] == "failed"), signal
    for number in (signal["score"], signal["assumed"]):
        assert number is None or (math.isfinite(number) and 0 <= number <= 1), signal
    assert signal["error"] is None or signal["error"]["type"] != "exception", signal
    return signal


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")
