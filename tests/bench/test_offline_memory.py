"""What `evaluate` holds of a recording: a few sessions, however many there are."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.base.frames import pack_frame
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service.evaluation import evaluate_recordings
from tests.support.dialect_spans import SpanSpec, request

TEXT = "the order was shipped on friday and will arrive in two days " * 1_500
SESSIONS = 70


def session(number: int) -> Iterator[bytes]:
    """Two traces of 90 kB each, the spans of one in two requests."""
    for trace in (2 * number + 1, 2 * number + 2):
        said = [{"role": "assistant", "parts": [{"type": "text", "content": f"{trace} {TEXT}"}]}]
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": f"s{number}",
            "gen_ai.output.messages": json.dumps(said),
        }
        trace_id = f"{trace:032x}"
        root = {"gen_ai.operation.name": "invoke_agent"}
        yield request(SpanSpec(id=2, parent=1, attributes=attributes), trace_id=trace_id)
        yield request(SpanSpec(id=1, attributes=root, end=9_999), trace_id=trace_id)


def peak(folder: Path, sessions: int) -> float:
    """Bytes that are held at most, in MiB, while recordings of so many sessions are scored."""
    file = folder / f"{sessions}.otlp"
    with file.open("wb") as stream:
        for number in range(sessions):
            stream.writelines(map(pack_frame, session(number)))
    config = Config(workers=0)
    plan = plan_from(config, only=["step_efficiency"])
    closed: list[int] = []
    gc.collect()
    tracemalloc.start()
    try:
        asyncio.run(
            evaluate_recordings(
                config, plan, [file], lambda _: None, lambda each: closed.append(each.number)
            )
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert closed == list(range(1, sessions + 1))
    return most / (1 << 20)


@pytest.mark.bench
def test_memory_does_not_grow_with_recordings(tmp_path: Path) -> None:
    """Reached: 1.1. Either batch without a bound: above 2."""
    peak(tmp_path, 1)  # what is imported and cached once

    less, more = peak(tmp_path, SESSIONS), peak(tmp_path, 4 * SESSIONS)

    print(f"most that is held of a recording and of four: {less:.1f} and {more:.1f} MiB")
    assert more <= 1.5 * less
