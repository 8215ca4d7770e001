"""The published schema is the signal: the same fields, the same closed lists, every outcome valid."""

import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
from jsonschema import Draft202012Validator

import collector
from collector.records.signal import Coverage, SessionTraces, Signal
from evaluators.judge_use import JudgeUse
from evaluators.model import Failure, Reason
from tests.support.signals import covered, encode, failed, signal, skipped
from tests.support.table import for_each

SCHEMA: dict[str, Any] = json.loads(
    (Path(collector.__file__).parent / "records" / "signal.schema.json").read_text()
)
INVALID = Path(__file__).parents[2] / "data" / "signals" / "invalid.jsonl"
"""Fields that make a signal invalid."""
VALIDATOR = Draft202012Validator(SCHEMA)
JUDGE = JudgeUse(model="m", calls=1, input_tokens=10, output_tokens=2, cost_usd=None, cached=False)

ADDED = {"traces", "started", "again"}
"""Fields that signals of earlier versions lack."""

OUTCOMES = {
    "scored": signal(),
    "stand-in": signal(final=False),
    "session": signal(
        trace=None,
        coverage=covered(4, 3),
        closed="idle",
        revision=812,
        traces=SessionTraces(first="a", newest="b"),
        started="2026-11-26T00:00:00.000000Z",
    ),
    "open session": signal(trace=None, coverage=covered(0, 0), final=False),
    "judged": signal(method="llm_judge", judge=JUDGE, evidence=("a",), contradiction=True),
    "measured": signal(trace=None, score=None, outcome="measured", metadata={"p50": 1.5}),
    "not_applicable": signal(score=None, outcome="not_applicable", assumed=1.0),
    "nothing to judge": signal(score=None, outcome="not_applicable", reason="no_expectations"),
    "failed": failed(judge=JUDGE),
    "skipped": skipped(truncated="explanation"),
    "bare": signal(agent_version=None, span_id=None, threshold=None, explanation=None),
}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@for_each("name", OUTCOMES)
def test_a_signal_of_every_outcome_is_valid(name: str) -> None:
    VALIDATOR.validate(json.loads(encode(OUTCOMES[name])))  # pyright: ignore[reportUnknownMemberType] - its stub is partial


@pytest.mark.parametrize(
    ("struct", "part"),
    [
        (Signal, SCHEMA),
        (Coverage, SCHEMA["$defs"]["coverage"]),
        (JudgeUse, SCHEMA["$defs"]["judge"]),
        (Failure, SCHEMA["$defs"]["error"]),
        (SessionTraces, SCHEMA["$defs"]["traces"]),
    ],
)
def test_it_lists_exactly_the_fields(struct: type[msgspec.Struct], part: dict[str, Any]) -> None:
    assert list(part["properties"]) == list(struct.__struct_fields__)
    required = [each for each in struct.__struct_fields__ if each not in ADDED]
    assert part["required"] == required
    assert part["additionalProperties"] is False


def test_its_closed_lists_are_the_codes() -> None:
    hints = get_type_hints(Signal)
    listed = {
        name: set(part["enum"]) - {None}
        for name, part in SCHEMA["properties"].items()
        if "enum" in part and name != "reason"
    }

    assert listed == {name: _words(hints[name]) for name in listed}
    assert set(listed) == {"scope", "method", "outcome", "closed", "sample"}
    assert set(SCHEMA["properties"]["reason"]["enum"]) == {*get_args(Reason), None}


def _words(hint: Any) -> set[str]:
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return {word for each in get_args(hint) for word in _words(each)}


@for_each("fields", map(json.loads, INVALID.read_text().splitlines()))
def test_what_is_no_signal_is_invalid(fields: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(  # pyright: ignore[reportUnknownMemberType] - its stub is partial
        {**json.loads(encode(signal())), **fields}
    )
