"""Every signal of every recording is valid by the published JSON Schema.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import collector
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.offline.recordings import evaluate_recordings, find
from tests.golden.test_captures import FOLDER, STACKS

SCHEMA: dict[str, Any] = json.loads(
    (Path(collector.__file__).parent / "records" / "signal.schema.json").read_text()
)


@pytest.mark.parametrize("stack", STACKS)
def test_every_signal_of_a_stack_is_valid(stack: str) -> None:
    settings = Config(workers=0)
    files = find([FOLDER / stack]).files
    validator = Draft202012Validator(SCHEMA)

    scored = asyncio.run(
        evaluate_recordings(settings, plan_from(settings), files, lambda _path: None)
    )

    assert scored.signals
    wrong = [
        (signal["evaluator"], error.message)
        for signal in map(json.loads, scored.signals)
        for error in validator.iter_errors(signal)  # pyright: ignore[reportUnknownMemberType] - its stub is partial
    ]
    assert wrong == []
