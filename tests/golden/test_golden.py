"""Every golden vector, one item each: what the seed systems' reference implementations answered.

`SPANWISE_GOLDEN` names another folder of files of the same kinds. See the README beside the vectors.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.checks import CHECKS

FOLDER = Path(os.environ.get("SPANWISE_GOLDEN") or Path(__file__).parents[1] / "data" / "golden")


def _cases() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            yield pytest.param(file.stem, case, id=case["id"])


CASES = list(_cases())
if not CASES:
    raise FileNotFoundError(f"no golden vectors in {FOLDER}")


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_golden(kind: str, case: dict[str, Any]) -> None:
    zod_only = "zod_only" if case["tag"].startswith("zod_only:") else None
    CHECKS[kind](case["input"], case["expected"], case["quirk"] or zod_only)
