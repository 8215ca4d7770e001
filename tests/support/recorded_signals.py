"""The signals of recordings, as `spanwise evaluate` writes them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.service.evaluation import evaluate_recordings

Signal = dict[str, Any]


def signals_of(config: Config, *files: Path) -> list[dict[str, Any]]:
    """Final signals, session after session in the order in which they close."""
    found: list[bytes] = []
    asyncio.run(
        evaluate_recordings(
            config,
            plan_from(config),
            files,
            lambda _path: None,
            lambda session: found.extend(session.signals),
        )
    )
    return [msgspec.json.decode(each) for each in found]


def key(signal: Signal) -> tuple[str, str]:
    """The session of a signal."""
    return signal["service"], signal["session_id"]


def newest_final(signals: list[Signal]) -> dict[tuple[str, ...], Signal]:
    """The final signal of each (subject, evaluator) with the highest revision."""
    found: dict[tuple[str, ...], Signal] = {}
    for each in signals:
        if each["final"]:
            subject = each["trace_id"] if each["scope"] == "trace" else each["session_id"]
            at = (each["service"], each["scope"], subject, each["evaluator"])
            if at not in found or each["revision"] >= found[at]["revision"]:
                found[at] = each
    return found
