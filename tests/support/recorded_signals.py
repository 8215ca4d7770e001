"""The signals of recordings, as `spanwise evaluate` writes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.offline.evaluation import evaluate_recordings


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
