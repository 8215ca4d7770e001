"""Every signal of every recording is valid by the published JSON Schema.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import collector
from collector.config.tree import Config
from collector.service.recordings import find
from tests.golden.test_captures import FOLDER, STACKS
from tests.support.recorded_signals import signals_of

SCHEMA: dict[str, Any] = json.loads(
    (Path(collector.__file__).parent / "records" / "signal.schema.json").read_text()
)


@pytest.mark.parametrize("stack", STACKS)
def test_every_signal_of_a_stack_is_valid(stack: str) -> None:
    settings = Config(workers=0)
    files = find([FOLDER / stack]).files
    validator = Draft202012Validator(SCHEMA)

    signals = signals_of(settings, *files)

    assert signals
    wrong = [
        (signal["evaluator"], error.message)
        for signal in signals
        for error in validator.iter_errors(signal)  # pyright: ignore[reportUnknownMemberType] - its stub is partial
    ]
    assert wrong == []
