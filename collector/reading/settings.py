"""What a worker needs of the configuration; see `PlanSettings` for why it does not get the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from collector.config.plan import PlanSettings, keys_from, plan_settings, without_plugins
from collector.otlp.redaction import RedactionSettings
from evaluators.dialects.content.sessions import Keys

if TYPE_CHECKING:
    from collector.config.tree import Config


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    plan: PlanSettings
    keys: Keys
    read_only: tuple[str, ...]  # tools that change nothing: `tasks.read_only`
    redaction: RedactionSettings
    log: str | None
    """The folder of the log on this disk, in which jobs name spans; None: jobs bring their spans."""


def reader_settings(config: Config, *, plugins: bool = False) -> ReaderSettings:
    """Those of a configuration; `plugins`: of a worker that runs third parties' evaluators."""
    plan = plan_settings(config)
    return ReaderSettings(
        plan=plan if plugins else without_plugins(plan),
        keys=keys_from(config),
        read_only=config.tasks.read_only,
        redaction=RedactionSettings.of(config),
        log=str(config.data_dir / "log") if config.log.kind == "disk" else None,
    )
