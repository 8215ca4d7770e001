"""A replay gives the signals that were given live, `revision` apart: it may differ, and the docs say so."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import asked
from tests.support.command import spanwise
from tests.support.sender import send
from tests.support.service import ROOT, Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

SETTINGS = ("windows.trace.root_grace=200ms", "embedder.kind=none")


def without_revision(lines: list[str]) -> dict[str, dict[str, Any]]:
    """Final signals of traces by id."""
    found = [json.loads(line) for line in lines]
    kept = [each for each in found if each["final"] and each["scope"] == "trace"]
    return {each["id"]: {k: v for k, v in each.items() if k != "revision"} for each in kept}


def test_live_and_replay_differ_in_nothing_but_the_revision(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SETTINGS) as service:
        send(service.grpc, *(asked(f"s{n % 3}", "Where is it?", number=n) for n in range(9)))
        service.wait_for(
            "all are scored",
            lambda: len({each["trace_id"] for each in service.signals()} - {None}) == 9,
            timeout=30,
        )
        live = without_revision(service.signal_lines())

    arguments = [
        p for each in (f"data_dir={tmp_path / 'data'}", *SETTINGS) for p in ("--set", each)
    ]
    again = spanwise("replay", *arguments)

    assert again.code == 0, again.err
    assert without_revision(again.out.splitlines()) == live


def test_the_schema_says_that_a_replay_may_give_another_revision() -> None:
    schema = next(ROOT.rglob("collector/**/signal.schema.json"))

    assert "replay" in json.loads(schema.read_text())["properties"]["revision"]["description"]
