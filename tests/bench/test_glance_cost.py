"""What looking at open traces costs: bytes that workers read of them beside the bytes of the traces."""

import json

import pytest

from collector.config.plan import plan_from
from collector.config.tree import Config, TraceWindow
from collector.reading.port import GlanceJob, reader_settings
from collector.reading.worker import JobRunner
from collector.records.span_refs import Piece, size_of
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request
from tests.support.open_traces_driver import OpenTracesDriver

HELD = 2.0
CONFIG = Config.model_validate({"embedder": {"kind": "none"}})


def turn(number: int, loops: bool) -> bytes:
    """A model call and the tool call that it made, as an agent without a root span exports them."""
    asked = json.dumps({"q": "x" if loops else str(number)})
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "app.note": "n" * 2_000}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": asked,
        "gen_ai.tool.call.result": "r" * 500,
    }
    first = 2 * number + 2
    return request(
        SpanSpec(id=first, parent=1, attributes=chat, start=number),
        SpanSpec(id=first + 1, parent=1, attributes=tool, start=number),
    )


def ratio(pace: float, *, length: float, loops: bool = False) -> float:
    """Bytes that all looks at a trace of this length read, real workers deciding, / its bytes when it closed."""
    driver, runner = (
        OpenTracesDriver(TraceWindow()),
        JobRunner(reader_settings(CONFIG), plan_from(CONFIG)),
    )
    read = number = 0
    now = 0.0

    def look(pieces: tuple[Piece, ...], *, is_part: bool) -> tuple[int, int]:
        nonlocal read
        read += sum(map(size_of, pieces))
        seen = runner.glance(
            GlanceJob(
                trace_id=bytes.fromhex(TRACE_ID),
                pieces=pieces,
                is_part=is_part,
                seen=now,
                revision=0,
            )
        )
        return seen.calls, seen.repeats_missing

    while now < length:
        driver.send(1_000 + now, turn(number, loops))
        number, now = number + 1, now + pace
        driver.tick(1_000 + now)
        for glance in driver.open_traces.take_glances():
            of, trace = driver.open_traces.as_closing, glance.trace
            if glance.first:
                calls, _ = look(of(glance).pieces, is_part=True)
                if not trace.came(calls):
                    continue
            _, trace.repeats_missing = look(of(glance.whole).pieces, is_part=False)
    (closing,) = driver.open_traces.drain(rootless="idle")
    return read / closing.size


@pytest.mark.bench
@pytest.mark.parametrize("length", [61, 119, 600])
def test_all_looks_read_at_most_twice_what_the_trace_holds(length: float) -> None:
    found = {
        f"{name}, a turn each {pace:g} s": ratio(pace, length=length, loops=loops)
        for name, loops in (("healthy", False), ("a loop", True))
        for pace in (2.0, 20.0)
    }

    for label, each in found.items():
        print(
            f"looks at an open trace of {length:g} s, {label}: {each:.2f} of its bytes, held at {HELD}"
        )
    assert max(found.values()) <= HELD
