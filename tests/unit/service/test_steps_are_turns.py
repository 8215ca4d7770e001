"""Traces of agents whose model calls left no spans, as Magentic-One's, are scored from end to end."""

import json
import struct
from pathlib import Path

from collector.config.tree import Config
from tests.support.dialect_spans import SpanSpec, request
from tests.support.recorded_signals import signals_of

SAID = [
    ("Orchestrator", "Search for the year."),
    ("WebSurfer", "The page says 1969."),
    ("Orchestrator", "FINAL ANSWER: 1969"),
]


def step(number: int, agent: str, text: str) -> SpanSpec:
    said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    return SpanSpec(
        id=number,
        parent=1,
        name=f"invoke_agent {agent}",
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.output.messages": json.dumps(said),
        },
        start=10 * number,
        end=10 * number + 9,
    )


def test_a_trace_of_agents_steps_is_a_turn_and_scored(tmp_path: Path) -> None:
    steps = [step(number, *said) for number, said in enumerate(SAID, 2)]
    sent = request(SpanSpec(id=1, name="group chat", end=99), *steps)
    recording = tmp_path / "magentic.otlp"
    recording.write_bytes(struct.pack(">I", len(sent)) + sent)

    signals = signals_of(Config(workers=0), recording)

    assert "not_a_turn" not in {signal["reason"] for signal in signals}
    scores = {signal["evaluator"]: signal["score"] for signal in signals}
    assert scores["confidence"] == 1.0
    assert scores["agent_reliability"] == 1.0
    assert {signal["agent"] for signal in signals} == {"Orchestrator"}
